package selector

import (
	"fmt"
	"strings"
)

// NotFoundError reports that the cluster has no resource that matches the selector.
type NotFoundError struct {
	Selector Selector
	// Similar lists resources that may have been meant: the name is the same, apart from
	// its case.
	Similar []Resource
	// Near lists resources with a similar name, the most similar ones first. It is too long a
	// shot for the message, because the resource may be installed later.
	Near []Resource
}

func (e *NotFoundError) Error() string {
	switch {
	case len(e.Similar) > 0:
		return fmt.Sprintf("%q selects nothing in this cluster, but there is %s: correct the name, the group, or the version",
			e.Selector, list(e.Similar))
	case e.Selector.Specific():
		return fmt.Sprintf("%q selects nothing in this cluster: install its CustomResourceDefinition, or correct the name", e.Selector)
	default:
		return fmt.Sprintf("%q selects nothing in this cluster", e.Selector)
	}
}

// AmbiguousError reports that a selector for one resource matches several.
type AmbiguousError struct {
	Selector Selector
	Found    []Resource
}

func (e *AmbiguousError) Error() string {
	return fmt.Sprintf("%q is ambiguous, and none of the matching resources is served (%s): specify one of them with its group",
		e.Selector, list(e.Found))
}

// list formats resources in the notation that selects exactly them.
func list(resources []Resource) string {
	names := make([]string, len(resources))
	for i, r := range resources {
		names[i] = r.String()
	}
	return strings.Join(names, ", ")
}
