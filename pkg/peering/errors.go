package peering

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// NotFoundError means that a peering object does not exist. Its message says how to
// create it.
type NotFoundError struct {
	// Group is the API group: kopf.dev or zalando.org.
	Group string
	// Kind is ClusterKopfPeering or KopfPeering.
	Kind string
	// Namespace is empty for a ClusterKopfPeering.
	Namespace string
	Name      string
	// NoResource means that the cluster does not even have the resource.
	NoResource bool
}

// definitions is where the definitions of the resources of peering are, for kubectl.
const definitions = "https://github.com/kopf-go/kopf//config/crd"

func (e *NotFoundError) Error() string {
	if e.NoResource {
		return fmt.Sprintf("the cluster does not have the resource of %s: install the definitions of peering with: kubectl apply -k %s; then create %q%s", e.Kind, definitions, e.Name, e.inNamespace())
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
	fmt.Fprintf(&b, `{"apiVersion":"%s/%s","kind":%q,"metadata":{`, e.Group, version, e.Kind)
	if e.Namespace != "" {
		fmt.Fprintf(&b, `"namespace":%q,`, e.Namespace)
	}
	fmt.Fprintf(&b, `"name":%q}}`, e.Name)
	return b.String()
}

// chooseMissing returns the error that says best why no API group has an object: the first
// one that forbids to look for it, or else that has the resource.
func chooseMissing(missing []error) error {
	if i := slices.IndexFunc(missing, apierrors.IsForbidden); i >= 0 {
		return missing[i]
	}
	hasResource := func(err error) bool {
		var notFound *NotFoundError
		return errors.As(err, &notFound) && !notFound.NoResource
	}
	if i := slices.IndexFunc(missing, hasResource); i >= 0 {
		return missing[i]
	}
	return missing[0]
}

// IsNotFound reports whether the error, or one that it wraps, is a NotFoundError.
func IsNotFound(err error) bool {
	var notFound *NotFoundError
	return errors.As(err, &notFound)
}

// errSamePriority is logged when peers have the same priority.
var errSamePriority = errors.New("several operators have the same priority, and all of them are paused: give them distinct priorities (--priority), or stop all but one; operators that have nothing to do with each other need peering objects with different names (--peering)")
