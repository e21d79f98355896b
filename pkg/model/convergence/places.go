package convergence

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kopf-go/kopf/pkg/model/object"
)

// prefix is the one whose annotations no operator takes for a change of an object.
const prefix = "kopf.zalando.org/"

// The labels and annotations on objects.
const (
	// PlacesAnnotation of a parent has the places of its children.
	PlacesAnnotation = prefix + "kopf-children"
	// OwnerLabel of a child has the hash of its parent and handler.
	OwnerLabel = prefix + "ensured-by"
	// MarksAnnotation of a child has the wanted state that was applied last.
	MarksAnnotation = prefix + "kopf-ensured"
	// KeepAnnotation of a child is set by people, so that the child is not deleted.
	KeepAnnotation = prefix + "keep"
)

// WaveAnnotation carries the wave of a child from the handler to the operator, which removes
// it.
const WaveAnnotation = prefix + "wave"

// Place is where children of one kind are, or were once.
type Place struct {
	schema.GroupKind
	// Namespace is the namespace of the children. It is empty for that of the parent, and
	// NoNamespace for cluster-scoped children.
	Namespace string
}

// NoNamespace is the namespace of cluster-scoped children in a Place.
const NoNamespace = "*"

// String returns "Deployment.apps" for the namespace of the parent, and otherwise
// "Deployment.apps/other".
func (p Place) String() string {
	if p.Namespace == "" {
		return p.GroupKind.String()
	}
	return p.GroupKind.String() + "/" + p.Namespace
}

// Places are all places of the children of one parent.
type Places map[Place]struct{}

// ReadPlaces reads the places from a parent. A text that cannot be read counts as no places.
func ReadPlaces(parent *object.Body) Places {
	var texts []string
	text, _ := parent.Lookup(object.Path{"metadata", "annotations", PlacesAnnotation})
	if text, ok := text.(string); !ok || json.Unmarshal([]byte(text), &texts) != nil {
		return nil
	}
	places := Places{}
	for _, text := range texts {
		kind, namespace, _ := strings.Cut(text, "/")
		places[Place{schema.ParseGroupKind(kind), namespace}] = struct{}{}
	}
	return places
}

// Text returns the annotation.
func (p Places) Text() string {
	texts := []string{}
	for place := range p {
		texts = append(texts, place.String())
	}
	slices.Sort(texts)
	text, _ := json.Marshal(texts)
	return string(text)
}

// With returns the places together with others.
func (p Places) With(others Places) Places {
	all := maps.Clone(p)
	if all == nil {
		all = Places{}
	}
	maps.Copy(all, others)
	return all
}

// AreReachable reports whether the garbage collector of Kubernetes deletes all children
// together with a parent in the namespace. It does not follow owner references to another
// namespace, or from cluster-scoped objects to those in a namespace.
func (p Places) AreReachable(parentNamespace string) bool {
	if parentNamespace == "" {
		return true
	}
	for place := range p {
		if place.Namespace != "" {
			return false
		}
	}
	return true
}
