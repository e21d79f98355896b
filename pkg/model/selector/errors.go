package selector

import (
	"fmt"
	"strings"
)

// NotFoundError says that the cluster has nothing that a selector selects.
type NotFoundError struct {
	Selector Selector
	// Similar are resources that could have been meant.
	Similar []Resource
}

func (e *NotFoundError) Error() string {
	switch {
	case len(e.Similar) > 0:
		return fmt.Sprintf("%q selects nothing in this cluster, but there is %s: correct the name, the group or the version",
			e.Selector, list(e.Similar))
	case e.Selector.Specific():
		return fmt.Sprintf("%q selects nothing in this cluster: install its CustomResourceDefinition, or correct the name", e.Selector)
	default:
		return fmt.Sprintf("%q selects nothing in this cluster", e.Selector)
	}
}

// AmbiguousError says that a selector is for one resource, but fits several.
type AmbiguousError struct {
	Selector Selector
	Found    []Resource
}

func (e *AmbiguousError) Error() string {
	return fmt.Sprintf("%q is ambiguous, and none of what it fits is served (%s): write the one that is meant, with its group",
		e.Selector, list(e.Found))
}

// list names resources in the notation that selects exactly them.
func list(resources []Resource) string {
	names := make([]string, len(resources))
	for i, r := range resources {
		names[i] = r.String()
	}
	return strings.Join(names, ", ")
}
