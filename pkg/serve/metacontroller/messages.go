package metacontroller

import (
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/json"
)

// groups are objects by their kinds, such as Pod.v1, and by their names.
type groups map[string]map[string]any

// groupOf returns the key of a kind: Pod.v1, or Deployment.apps/v1.
func groupOf(kind schema.GroupVersionKind) string {
	return kind.Kind + "." + kind.GroupVersion().String()
}

// naming names the objects of groups.
type naming struct {
	// uniform names objects in namespaces by namespace and name, in all cases.
	uniform bool
	// parent is the namespace of the parent, or empty.
	parent string
}

// add adds an object. One that the parent cannot refer to is left out.
func (n naming) add(to groups, obj *unstructured.Unstructured) {
	name := obj.GetName()
	namespace := obj.GetNamespace()
	switch {
	case namespace != "" && (n.uniform || n.parent == ""):
		name = namespace + "/" + name
	case !n.uniform && namespace != n.parent:
		return
	}
	group := groupOf(obj.GroupVersionKind())
	if to[group] == nil {
		to[group] = map[string]any{}
	}
	to[group][name] = obj.Object
}

// compositeRequest is the request of sync and finalize hooks of composites.
type compositeRequest struct {
	Controller map[string]any `json:"controller"`
	Parent     map[string]any `json:"parent"`
	Children   groups         `json:"children"`
	Related    groups         `json:"related"`
	Finalizing bool           `json:"finalizing"`
}

// decoratorRequest is the request of sync and finalize hooks of decorators.
type decoratorRequest struct {
	Controller  map[string]any `json:"controller"`
	Object      map[string]any `json:"object"`
	Attachments groups         `json:"attachments"`
	Related     groups         `json:"related"`
	Finalizing  bool           `json:"finalizing"`
}

// customizeRequest is the request of customize hooks.
type customizeRequest struct {
	Controller map[string]any `json:"controller"`
	Parent     map[string]any `json:"parent"`
}

// answer is what a sync or finalize hook wants.
type answer struct {
	// Status is nil if there is none.
	Status map[string]any `json:"status"`
	// ResyncAfterSeconds is 0 if the hook need not be called again without a change.
	ResyncAfterSeconds float64 `json:"resyncAfterSeconds"`
	// Finalized ends the finalization.
	Finalized bool `json:"finalized"`

	// Labels and Annotations are changed by a decorator. Nil removes one.
	Labels, Annotations map[string]*string `json:"-"`
	// Children are the children or attachments that must exist.
	Children []*unstructured.Unstructured `json:"-"`
}

// parseAnswer parses the answer of a hook of a composite, or else of a decorator.
func parseAnswer(data []byte, composite, strict bool) (*answer, error) {
	var ofComposite struct {
		answer

		Children []map[string]any `json:"children"`
	}
	var ofDecorator struct {
		answer

		Labels      map[string]*string `json:"labels"`
		Annotations map[string]*string `json:"annotations"`
		Attachments []map[string]any   `json:"attachments"`
	}
	var a *answer
	var children []map[string]any
	var err error
	if composite {
		err = parse(data, &ofComposite, strict)
		a = &ofComposite.answer
		children = ofComposite.Children
	} else {
		err = parse(data, &ofDecorator, strict)
		a = &ofDecorator.answer
		a.Labels = ofDecorator.Labels
		a.Annotations = ofDecorator.Annotations
		children = ofDecorator.Attachments
	}
	if err != nil {
		return nil, err
	}
	for i, child := range children {
		obj := &unstructured.Unstructured{Object: child}
		if child == nil || obj.GetAPIVersion() == "" || obj.GetKind() == "" || obj.GetName() == "" {
			return nil, fmt.Errorf("the child %d of the answer needs an apiVersion, a kind, and a metadata.name", i+1)
		}
		a.Children = append(a.Children, obj)
	}
	return a, nil
}

// parse decodes an answer. Unknown and repeated fields are errors only if it is strict.
func parse(data []byte, into any, strict bool) error {
	if len(strings.TrimSpace(string(data))) == 0 {
		return errors.New("the answer is empty: it must be a JSON object")
	}
	problems, err := json.UnmarshalStrict(data, into)
	if err == nil && strict {
		err = errors.Join(problems...)
	}
	if err != nil {
		return fmt.Errorf("the answer cannot be used: %w", err)
	}
	return nil
}
