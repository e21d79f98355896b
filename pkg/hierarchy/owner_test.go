package hierarchy_test

import (
	"context"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	"github.com/kopf-go/kopf/pkg/hierarchy"
	"github.com/kopf-go/kopf/pkg/model/object"
)

const ownerJSON = `{"apiVersion":"kopf.dev/v1","kind":"KopfExample","metadata":
	{"name":"example","namespace":"default","uid":"uid-1","labels":{"somelabel":"somevalue"}}}`

func ownerMap() map[string]any {
	return map[string]any{
		"apiVersion": "kopf.dev/v1", "kind": "KopfExample",
		"metadata": map[string]any{
			"name": "example", "namespace": "default", "uid": "uid-1",
			"labels": map[string]string{"somelabel": "somevalue"},
		},
	}
}

type arguments struct{ body *object.Body }

func (a arguments) Body() *object.Body { return a.body }

func typedOwner() *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Name: "example", Namespace: "default", UID: "uid-1", Labels: map[string]string{"somelabel": "somevalue"},
	}}
}

func TestOwnerOfEveryKindOfObject(t *testing.T) {
	snapshot, err := object.ParseSnapshot([]byte(ownerJSON))
	noError(t, err)
	typed := typedOwner()
	typed.APIVersion, typed.Kind = "kopf.dev/v1", "KopfExample"
	for name, obj := range map[string]any{
		"an owner":               owner,
		"a body":                 snapshot.Body(),
		"a handler's arguments":  arguments{snapshot.Body()},
		"a snapshot":             snapshot,
		"a map":                  ownerMap(),
		"an unstructured object": &unstructured.Unstructured{Object: ownerMap()},
		"a typed object":         typed,
	} {
		t.Run(name, func(t *testing.T) {
			got, err := hierarchy.OwnerOf(obj)
			noError(t, err)
			equal(t, got, owner)
		})
	}
}

func TestOwnerOfRejectsNonObjects(t *testing.T) {
	for name, obj := range map[string]any{
		"nil":                     nil,
		"a nil pointer":           (*corev1.Pod)(nil),
		"arguments without body":  arguments{},
		"a number":                1,
		"a struct, not a pointer": corev1.Pod{},
		"a map with bad metadata": map[string]any{"metadata": "x"},
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := hierarchy.OwnerOf(obj); err == nil {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestTypedOwners(t *testing.T) {
	adopt := func(ctx context.Context, owner any) (*corev1.Pod, error) {
		pod := &corev1.Pod{}
		return pod, hierarchy.Adopt(ctx, pod, hierarchy.OwnedBy(owner))
	}
	t.Run("without a kind, the error names the remedy", func(t *testing.T) {
		_, err := adopt(context.Background(), typedOwner())
		if err == nil || !strings.Contains(err.Error(), "OwnerFromScheme") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("the kind comes from the scheme", func(t *testing.T) {
		known, err := hierarchy.OwnerFromScheme(typedOwner(), clientgoscheme.Scheme)
		noError(t, err)
		pod, err := adopt(context.Background(), known)
		noError(t, err)
		equal(t, [2]string{pod.OwnerReferences[0].APIVersion, pod.OwnerReferences[0].Kind}, [2]string{"v1", "ConfigMap"})
	})
	t.Run("the kind comes from the context's scheme", func(t *testing.T) {
		pod, err := adopt(hierarchy.WithScheme(handling(), clientgoscheme.Scheme), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "uid-2"}})
		noError(t, err)
		equal(t, [2]string{pod.OwnerReferences[0].APIVersion, pod.OwnerReferences[0].Kind}, [2]string{"v1", "Node"})
	})
	t.Run("the context's scheme does not know the type", func(t *testing.T) {
		if _, err := adopt(hierarchy.WithScheme(context.Background(), runtime.NewScheme()), typedOwner()); err == nil {
			t.Error("no error")
		}
	})
	t.Run("the scheme does not know the type", func(t *testing.T) {
		if _, err := hierarchy.OwnerFromScheme(typedOwner(), runtime.NewScheme()); err == nil {
			t.Error("no error")
		}
	})
	t.Run("the handled object's kind comes from the context", func(t *testing.T) {
		pod, err := adopt(handling(), typedOwner())
		noError(t, err)
		equal(t, pod.OwnerReferences, []metav1.OwnerReference{reference()})
	})
	t.Run("another object's kind does not come from the context", func(t *testing.T) {
		other := typedOwner()
		other.UID = "uid-2"
		if _, err := adopt(handling(), other); err == nil {
			t.Error("no error")
		}
	})
}

func TestClusterScopedOwner(t *testing.T) {
	node := hierarchy.Owner{APIVersion: "v1", Kind: "Node", Name: "n", UID: "u"}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns"}}
	noError(t, hierarchy.Adopt(context.Background(), pod, hierarchy.OwnedBy(node)))
	equal(t, pod.Namespace, "ns")
	noError(t, hierarchy.AdjustNamespace(context.Background(), pod, hierarchy.OwnedBy(node), hierarchy.Forced()))
	equal(t, pod.Namespace, "")
}

func TestAdoptWarnsOfAChildInAnotherNamespace(t *testing.T) {
	var lines []string
	logger := funcr.New(func(_, line string) { lines = append(lines, line) }, funcr.Options{})
	ctx := logr.NewContext(handling(), logger)
	noError(t, hierarchy.Adopt(ctx, &corev1.Pod{}))
	equal(t, len(lines), 0)
	noError(t, hierarchy.Adopt(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "x", Namespace: "other"}}))
	if len(lines) != 1 || !strings.Contains(lines[0], "other") {
		t.Errorf("logged: %v", lines)
	}
}

func TestReferences(t *testing.T) {
	ref, err := hierarchy.BuildOwnerReference(ownerMap())
	noError(t, err)
	equal(t, ref, reference())

	want := corev1.ObjectReference{APIVersion: "kopf.dev/v1", Kind: "KopfExample", Name: "example", Namespace: "default", UID: "uid-1"}
	got, err := hierarchy.BuildObjectReference(ownerMap())
	noError(t, err)
	equal(t, got, want)

	both, err := hierarchy.ObjectReferences([]any{ownerMap(), typedOwner()}, clientgoscheme.Scheme)
	noError(t, err)
	configMap := want
	configMap.APIVersion, configMap.Kind = "v1", "ConfigMap"
	equal(t, both, []corev1.ObjectReference{want, configMap})

	if _, err := hierarchy.ObjectReferences([]any{ownerMap(), typedOwner()}, nil); err == nil || !strings.Contains(err.Error(), "objects[1]") {
		t.Errorf("got %v", err)
	}
}

func TestLazyOwnerIsReadAtEveryCall(t *testing.T) {
	var body *object.Body
	ctx := hierarchy.WithLazyOwner(t.Context(), func() *object.Body { return body })
	for _, name := range []string{"before", "after"} {
		body = object.NewBody(map[string]any{"kind": "Pod", "metadata": map[string]any{"name": name}})
		if owner, known := hierarchy.OwnerFrom(ctx); !known || owner.Name != name || owner.Kind != "Pod" {
			t.Errorf("%v, %v: the owner is %s now", owner, known, name)
		}
	}
	if _, known := hierarchy.OwnerFrom(t.Context()); known {
		t.Error("there is no owner in an empty context")
	}
}
