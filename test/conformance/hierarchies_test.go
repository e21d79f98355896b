package conformance

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/kopf-go/kopf/pkg/hierarchy"
	"github.com/kopf-go/kopf/pkg/model/object"
)

type hierarchyInput struct {
	Function           string            `json:"function"`
	Objects            []map[string]any  `json:"objects"`
	Owner              map[string]any    `json:"owner"`
	Labels             map[string]string `json:"labels"`
	Name               string            `json:"name"`
	Namespace          string            `json:"namespace"`
	Nested             any               `json:"nested"` // a string or a list
	Forced             bool              `json:"forced"`
	Strict             bool              `json:"strict"`
	Controller         bool              `json:"controller"`
	BlockOwnerDeletion bool              `json:"blockOwnerDeletion"`
}

func TestHierarchies(t *testing.T) {
	for _, v := range load[hierarchyInput, []any](t, "hierarchies") {
		t.Run(v.Name, func(t *testing.T) {
			if excepted(t, "hierarchies", v.Name) {
				return
			}
			if err := v.Input.call(); err != nil {
				t.Fatal(err)
			}
			got := make([]any, len(v.Input.Objects))
			for i, obj := range v.Input.Objects {
				got[i] = withoutEmptyMetadata(obj)
			}
			want := withoutEmptyMetadata(v.Expect)
			if !reflect.DeepEqual(got, want) {
				t.Errorf("%s\ngot  %v\nwant %v", v.Input.Function, got, want)
			}
		})
	}
}

func (in *hierarchyInput) call() error {
	ctx := context.Background()
	if in.Owner != nil {
		ctx = hierarchy.WithOwner(ctx, hierarchy.OwnerOfBody(object.NewBody(in.Owner)))
	}
	switch in.Function {
	case "adopt":
		return hierarchy.Adopt(ctx, in.Objects, slices.Concat(
			given[hierarchy.AdoptOption](in.Forced, hierarchy.Forced()),
			given[hierarchy.AdoptOption](in.Strict, hierarchy.Strict()),
			given[hierarchy.AdoptOption](true, hierarchy.Nested(in.nested()...)))...)
	case "label":
		return hierarchy.Label(ctx, in.Objects, slices.Concat(
			given[hierarchy.LabelOption](in.Forced, hierarchy.Forced()),
			given(true, hierarchy.Labels(in.Labels)),
			given(true, hierarchy.Nested(in.nested()...)))...)
	case "harmonize_naming":
		return hierarchy.HarmonizeNaming(ctx, in.Objects, slices.Concat(
			given[hierarchy.NamingOption](in.Forced, hierarchy.Forced()),
			given(in.Strict, hierarchy.Strict()),
			given(true, hierarchy.Name(in.Name)))...)
	case "adjust_namespace":
		return hierarchy.AdjustNamespace(ctx, in.Objects, slices.Concat(
			given[hierarchy.NamespaceOption](in.Forced, hierarchy.Forced()),
			given(true, hierarchy.Namespace(in.Namespace)))...)
	case "append_owner_reference":
		return hierarchy.AppendOwnerReference(ctx, in.Objects, slices.Concat(
			given[hierarchy.ReferenceOption](!in.Controller, hierarchy.NotController()),
			given[hierarchy.ReferenceOption](!in.BlockOwnerDeletion, hierarchy.NotBlocking()))...)
	case "remove_owner_reference":
		return hierarchy.RemoveOwnerReference(ctx, in.Objects)
	}
	return fmt.Errorf("unknown function %q", in.Function)
}

// given returns the option if the vector has it.
func given[O any](has bool, option O) []O {
	if !has {
		return nil
	}
	return []O{option}
}

func (in *hierarchyInput) nested() []string {
	switch nested := in.Nested.(type) {
	case string:
		return []string{nested}
	case []any:
		fields := make([]string, len(nested))
		for i, field := range nested {
			fields[i] = fmt.Sprint(field)
		}
		return fields
	}
	return nil
}

// withoutEmptyMetadata removes nulls, and empty labels, owner references, and metadata, which
// the API server treats as absent.
func withoutEmptyMetadata(value any) any {
	switch value := value.(type) {
	case []any:
		list := make([]any, len(value))
		for i, item := range value {
			list[i] = withoutEmptyMetadata(item)
		}
		return list
	case map[string]any:
		mapping := map[string]any{}
		for key, item := range value {
			if item = withoutEmptyMetadata(item); item != nil && !isEmptyMetadata(key, item) {
				mapping[key] = item
			}
		}
		return mapping
	}
	return value
}

func isEmptyMetadata(key string, value any) bool {
	switch key {
	case "metadata", "labels", "ownerReferences":
		return reflect.ValueOf(value).Len() == 0
	}
	return false
}
