package hierarchy_test

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kopf-go/kopf/pkg/hierarchy"
	"github.com/kopf-go/kopf/pkg/model/object"
)

func TestErrorMessages(t *testing.T) {
	controlled := func() *corev1.Pod {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}}
		other := hierarchy.Owner{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "rs", UID: "uid-2"}
		noError(t, hierarchy.AppendOwnerReference(context.Background(), pod, hierarchy.OwnedBy(other)))
		return pod
	}
	incomplete := func(change func(*hierarchy.Owner)) hierarchy.OwnerOption {
		o := owner
		change(&o)
		return hierarchy.OwnedBy(o)
	}
	tests := map[string]struct {
		err  error
		want string
	}{
		"no owner anywhere": {
			hierarchy.Adopt(context.Background(), &corev1.Pod{}),
			"cannot adopt any object: there is no owner: the context has no handled object; pass the context of the handler, or name the owner with OwnedBy",
		},
		"nothing to adopt": {
			hierarchy.Adopt(handling(), nil),
			"cannot adopt an object: it is nil",
		},
		"a nil pointer in a list": {
			hierarchy.Label(handling(), []*corev1.Pod{{}, nil}),
			"cannot label objects[1]: an object: it is nil",
		},
		"a struct instead of a pointer": {
			hierarchy.HarmonizeNaming(handling(), []any{&corev1.Pod{}, []any{corev1.Pod{}}}),
			"cannot name objects[1][0]: an object: v1.Pod is not supported: give a pointer to a typed object, an *unstructured.Unstructured, a map[string]any, or a list of these",
		},
		"the handled object itself": {
			hierarchy.Label(handling(), object.NewBody(ownerMap())),
			"cannot label an object: *object.Body is a read-only view of an object in the cluster: change a copy of it (View().Map())",
		},
		"metadata that is not a mapping": {
			hierarchy.AdjustNamespace(handling(), map[string]any{"metadata": 5}),
			"cannot set the namespace of an object: its metadata must be a mapping, not int",
		},
		"another controller": {
			hierarchy.Adopt(handling(), controlled()),
			`cannot adopt *v1.Pod "p": it is controlled by ReplicaSet "rs" (uid uid-2) already, and an object has at most one controller: use NotController, or remove that owner first`,
		},
		"an owner that does not exist yet": {
			hierarchy.AppendOwnerReference(handling(), &corev1.Pod{}, incomplete(func(o *hierarchy.Owner) { o.UID = "" })),
			`cannot add an owner to any object: the owner, KopfExample "default/example", has no uid: it must exist in the cluster before other objects can belong to it`,
		},
		"an owner without a name": {
			hierarchy.HarmonizeNaming(handling(), &corev1.Pod{}, incomplete(func(o *hierarchy.Owner) { o.Name = "" })),
			"cannot name any object: the owner has no name yet: set one with the option Name",
		},
		"removing an owner without a uid": {
			hierarchy.RemoveOwnerReference(handling(), &corev1.Pod{}, incomplete(func(o *hierarchy.Owner) { o.UID = "" })),
			"cannot remove the owner of any object: the owner has no uid, so its reference cannot be identified",
		},
		"an empty name": {
			hierarchy.HarmonizeNaming(handling(), &corev1.Pod{}, hierarchy.Name("")),
			"cannot name any object: the name is empty: omit the option to use the name of the owner",
		},
		"an owner that is not an object": {
			hierarchy.Label(handling(), &corev1.Pod{}, hierarchy.OwnedBy("x")),
			"cannot label any object: string is not an object: it has no metadata",
		},
		"a bad nested path": {
			hierarchy.Label(handling(), &corev1.Pod{}, hierarchy.Nested("spec..template")),
			`cannot label any object: field "spec..template" has an empty part`,
		},
		"bad labels in a nested object": {
			hierarchy.Label(handling(), map[string]any{"kind": "Job", "spec": map[string]any{"template": map[string]any{"metadata": map[string]any{"labels": 1}}}}, hierarchy.Nested("spec.template")),
			`cannot label Job "": field spec.template: its metadata cannot be read: `,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if test.err == nil || !strings.HasPrefix(test.err.Error(), test.want) {
				t.Errorf("got  %v\nwant %s", test.err, test.want)
			}
		})
	}
}

func TestNilOptionIsIgnored(t *testing.T) {
	var forced hierarchy.LabelOption
	noError(t, hierarchy.Label(handling(), &corev1.Pod{}, forced))
}
