package conversion

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"strings"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/pkg/model/object"
)

// StepError is the failure of one conversion on the way of an object.
type StepError struct {
	Step *Declaration
	Err  error
}

func (e *StepError) Error() string {
	return fmt.Sprintf("from %s to %s: %s", e.Step.From, e.Step.To, e.Err)
}

// Unwrap returns the error of the function.
func (e *StepError) Unwrap() error { return e.Err }

// Convert returns the object in another version, and leaves the given one as it is. An error of a function
// is a *StepError.
func (g *Graph) Convert(ctx context.Context, from *unstructured.Unstructured, to string, logger logr.Logger) (*unstructured.Unstructured, error) {
	kind := from.GroupVersionKind()
	if kind.Group != g.Group || kind.Kind != g.Kind {
		return nil, fmt.Errorf("it is a %s of %s, and not a %s of %s", kind.Kind, kind.GroupVersion(), g.Kind, g.Group)
	}
	path, err := g.Path(kind.Version, to)
	if err != nil {
		return nil, err
	}
	converted := from
	for _, step := range path {
		converted, err = g.take(ctx, step, converted, logger)
		if err != nil {
			return nil, &StepError{step, err}
		}
	}
	return converted, nil
}

// take calls the function of one conversion with a copy of the object.
func (g *Graph) take(ctx context.Context, step *Declaration, from *unstructured.Unstructured, logger logr.Logger) (*unstructured.Unstructured, error) {
	if ctx.Err() != nil {
		return nil, fmt.Errorf("no time was left to call the function: %w", context.Cause(ctx))
	}
	call := &Call{Object: from.DeepCopy(), From: step.From, To: step.To, Logger: logger}
	convert := func() error { return handler.Readable(step.convert(ctx, call)) } // methods of errors are code of users, too
	select {
	case err := <-handler.Start(convert):
		if err != nil {
			return nil, err
		}
	case <-ctx.Done(): // the other objects and the API server do not wait for it; the copy of the object is its own
		return nil, fmt.Errorf("the function did not return in time: %w", context.Cause(ctx))
	}
	converted := call.Object
	if converted == nil || converted.Object == nil {
		return nil, errors.New("the function has removed the whole object")
	}
	version := schema.GroupVersion{Group: g.Group, Version: step.To}.String()
	if got := converted.GetAPIVersion(); got != version && got != from.GetAPIVersion() {
		return nil, fmt.Errorf("the function changes the apiVersion to %q: it can only become %q", got, version)
	}
	if got := converted.GetKind(); got != from.GetKind() {
		return nil, fmt.Errorf("the function changes the kind to %q", got)
	}
	if err := keepMetadata(converted, from); err != nil {
		return nil, err
	}
	converted.SetAPIVersion(version)
	return converted, nil
}

// keepMetadata restores the metadata, apart from labels and annotations. It returns an error if it was
// changed: the API server would ignore that without a word, or refuse all objects of the request.
func keepMetadata(converted, from *unstructured.Unstructured) error {
	changed, err := metadataOf(converted)
	if err != nil {
		return err
	}
	before, err := metadataOf(from)
	if err != nil {
		return err
	}
	field := firstDifference(reflect.ValueOf(*before), reflect.ValueOf(*changed))
	if field != "" {
		return fmt.Errorf("the function changes metadata.%s: of the metadata, only labels and annotations can change", field)
	}
	original, _ := from.Object["metadata"].(map[string]any)
	kept := runtime.DeepCopyJSON(original)
	if kept == nil {
		kept = map[string]any{}
	}
	converted.Object["metadata"] = kept
	converted.SetLabels(changed.Labels)
	converted.SetAnnotations(changed.Annotations)
	return nil
}

// metadataOf returns the metadata without the field owners, which can be larger than the object, and which
// keepMetadata restores in any case.
func metadataOf(of *unstructured.Unstructured) (*metav1.ObjectMeta, error) {
	raw := of.Object["metadata"]
	if fields, ok := raw.(map[string]any); ok {
		fields = maps.Clone(fields)
		delete(fields, "managedFields")
		raw = fields
	}
	var metadata metav1.ObjectMeta
	if err := object.NewValue(raw).Decode(&metadata); err != nil {
		return nil, fmt.Errorf("the function has left metadata that cannot be read: %w", err)
	}
	return &metadata, nil
}

// firstDifference returns the name of the first field that differs and that a conversion cannot change, or "".
func firstDifference(before, after reflect.Value) string {
	for i := range before.NumField() {
		name, _, _ := strings.Cut(before.Type().Field(i).Tag.Get("json"), ",")
		if name != "labels" && name != "annotations" && !equality.Semantic.DeepEqual(before.Field(i).Interface(), after.Field(i).Interface()) {
			return name
		}
	}
	return ""
}
