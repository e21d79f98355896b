package peering

import (
	"errors"
	"fmt"
	"strings"
)

// NotFoundError means that a peering object does not exist. Its message says how to
// create it.
type NotFoundError struct {
	// Kind is ClusterKopfPeering or KopfPeering.
	Kind string
	// Namespace is empty for a ClusterKopfPeering.
	Namespace string
	Name      string
	// NoResource means that the cluster does not even have the resource.
	NoResource bool
}

func (e *NotFoundError) Error() string {
	if e.NoResource {
		return fmt.Sprintf("the cluster does not have the resource of %s: install its definition (config/crd), then create %q%s", e.Kind, e.Name, e.inNamespace())
	}
	return fmt.Sprintf("there is no %s %q%s: create it with: echo '%s' | kubectl create -f -", e.Kind, e.Name, e.inNamespace(), e.manifest())
}

func (e *NotFoundError) inNamespace() string {
	if e.Namespace == "" {
		return ""
	}
	return fmt.Sprintf(" in the namespace %q", e.Namespace)
}

func (e *NotFoundError) manifest() string {
	var b strings.Builder
	fmt.Fprintf(&b, `{"apiVersion":"%s/%s","kind":%q,"metadata":{`, group, version, e.Kind)
	if e.Namespace != "" {
		fmt.Fprintf(&b, `"namespace":%q,`, e.Namespace)
	}
	fmt.Fprintf(&b, `"name":%q}}`, e.Name)
	return b.String()
}

// IsNotFound reports whether the error, or one that it wraps, is a NotFoundError.
func IsNotFound(err error) bool {
	var notFound *NotFoundError
	return errors.As(err, &notFound)
}

// errSamePriority is logged when peers have the same priority.
var errSamePriority = errors.New("several operators have the same priority, and all of them are paused: give them distinct priorities (--priority), or stop all but one")
