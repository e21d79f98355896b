package hierarchy_test

import (
	"context"
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	"github.com/kopf-go/kopf/pkg/hierarchy"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/patch"
)

// handled has the arguments of a handler.
type handled struct {
	body  *object.Body
	patch *patch.Patch
}

func (h handled) Body() *object.Body { return h.body }

func (h handled) Patch() *patch.Patch { return h.patch }

// handlerOf returns the arguments and the context of a handler of an object.
func handlerOf(t *testing.T, raw map[string]any) (context.Context, handled) {
	t.Helper()
	body := object.NewBody(raw)
	ctx := hierarchy.WithScheme(hierarchy.WithOwner(t.Context(), hierarchy.OwnerOfBody(body)), clientgoscheme.Scheme)
	return ctx, handled{body, &patch.Patch{}}
}

// pod is a namespaced object.
func pod() map[string]any {
	return map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "one", "namespace": "ns", "uid": "u-1"}}
}

// node is an owner as a client returns it: without a kind.
func node() *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", UID: "u-2"}}
}

func nodeReference(controller bool) map[string]any {
	return map[string]any{
		"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": "u-2",
		"controller": controller, "blockOwnerDeletion": true,
	}
}

// controlledBy returns a pod that has a controller.
func controlledBy(uid string) map[string]any {
	raw := pod()
	raw["metadata"].(map[string]any)["ownerReferences"] = []any{map[string]any{
		"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "rs", "uid": uid, "controller": true,
	}}
	return raw
}

func TestAppendOwnerAddsAReferenceToTheObjectAsItIsWhenThePatchIsWritten(t *testing.T) {
	tests := map[string]struct {
		latest  map[string]any
		options []hierarchy.OwnershipOption
		want    []any // nil: nothing to write
	}{
		"the object has no owner": {pod(), nil, []any{nodeReference(true)}},
		"it has a controller by now": {
			controlledBy("u-3"),
			[]hierarchy.OwnershipOption{hierarchy.NotController()},
			[]any{controlledBy("u-3")["metadata"].(map[string]any)["ownerReferences"].([]any)[0], nodeReference(false)},
		},
		"it has this owner by now": {controlledBy("u-2"), nil, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			ctx, c := handlerOf(t, pod())
			if err := hierarchy.AppendOwner(ctx, c, node(), test.options...); err != nil {
				t.Fatal(err)
			}
			got, err := c.Patch().Resolve(test.latest)
			var want map[string]any
			if test.want != nil {
				want = map[string]any{"metadata": map[string]any{"ownerReferences": test.want}}
			}
			if err != nil || len(got)+len(want) > 0 && !reflect.DeepEqual(got, want) {
				t.Errorf("got %v, %v, want %v", got, err, want)
			}
		})
	}
}

func TestAppendOwnerRefuses(t *testing.T) {
	self := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "one", UID: "u-1"}}
	unsaved := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}
	for name, test := range map[string]struct {
		raw   map[string]any
		owner any
		want  string
	}{
		"no owner":                          {pod(), nil, "cannot add an owner to the object: the object is nil"},
		"a value that is not an object":     {pod(), "n1", "string is not an object"},
		"the object itself":                 {pod(), self, `Pod "one" cannot own itself`},
		"an owner that does not exist yet":  {pod(), unsaved, "has no uid"},
		"a second controller":               {controlledBy("u-3"), node(), "an object has at most one controller: use NotController"},
		"a type that is not in the scheme":  {pod(), &unknownType{}, "the kind of"},
		"arguments of an object without it": {pod(), handled{body: object.NewBody(nil)}, "has no name"},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, c := handlerOf(t, test.raw)
			err := hierarchy.AppendOwner(ctx, c, test.owner)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q in it", err, test.want)
			}
			if !c.Patch().Empty() {
				t.Error("the patch is not empty")
			}
		})
	}
}

type unknownType struct{ corev1.Pod }

// A controller that another client adds before the patch is written is an error of the
// patch, which fails the handler.
func TestAppendOwnerFindsASecondControllerAlsoWhenThePatchIsWritten(t *testing.T) {
	ctx, c := handlerOf(t, pod())
	if err := hierarchy.AppendOwner(ctx, c, node()); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Patch().Resolve(controlledBy("u-3")); err == nil || !strings.Contains(err.Error(), "at most one controller") {
		t.Errorf("got %v", err)
	}
}

// OwnedBy takes objects as a client returns them.
func TestOwnedByFindsTheKindOfATypedOwnerInTheSchemeOfTheClient(t *testing.T) {
	ctx, _ := handlerOf(t, pod())
	child := &corev1.ConfigMap{}
	if err := hierarchy.AppendOwnerReference(ctx, child, hierarchy.OwnedBy(node())); err != nil {
		t.Fatal(err)
	}
	if refs := child.OwnerReferences; len(refs) != 1 || refs[0].APIVersion != "v1" || refs[0].Kind != "Node" {
		t.Errorf("got %v", refs)
	}
}
