package hierarchy_test

import (
	"context"
	"reflect"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kopf-go/kopf/pkg/hierarchy"
)

var owner = hierarchy.Owner{
	APIVersion: "kopf.dev/v1", Kind: "KopfExample", Name: "example", Namespace: "default", UID: "uid-1",
	Labels: map[string]string{"somelabel": "somevalue"},
}

func handling() context.Context { return hierarchy.WithOwner(context.Background(), owner) }

func reference() metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion: "kopf.dev/v1", Kind: "KopfExample", Name: "example", UID: "uid-1",
		Controller: new(true), BlockOwnerDeletion: new(true),
	}
}

func adopted() metav1.ObjectMeta {
	return metav1.ObjectMeta{
		GenerateName: "example-", Namespace: "default",
		Labels:          map[string]string{"somelabel": "somevalue"},
		OwnerReferences: []metav1.OwnerReference{reference()},
	}
}

func adoptedMap() map[string]any {
	return map[string]any{
		"generateName": "example-", "namespace": "default",
		"labels": map[string]any{"somelabel": "somevalue"},
		"ownerReferences": []any{map[string]any{
			"apiVersion": "kopf.dev/v1", "kind": "KopfExample", "name": "example", "uid": "uid-1",
			"controller": true, "blockOwnerDeletion": true,
		}},
	}
}

func equal(t *testing.T, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %#v\nwant %#v", got, want)
	}
}

func noError(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestAdoptAcceptsEveryKindOfObjectAndList(t *testing.T) {
	pods := []corev1.Pod{{}, {}}
	typedList := &corev1.PodList{Items: []corev1.Pod{{}, {}}}
	unstructuredList := &unstructured.UnstructuredList{Items: []unstructured.Unstructured{{}, {Object: map[string]any{}}}}
	listAsMap := &unstructured.Unstructured{Object: map[string]any{"kind": "List", "items": []any{map[string]any{}}}}
	tests := map[string]struct {
		objs any
		get  func() []any // the metadata afterwards
	}{}
	add := func(name string, objs any, get func() []any) {
		tests[name] = struct {
			objs any
			get  func() []any
		}{objs, get}
	}
	pod, job := &corev1.Pod{}, &batchv1.Job{}
	add("a typed object", pod, func() []any { return []any{pod.ObjectMeta} })
	add("a slice of typed objects", pods, func() []any { return []any{pods[0].ObjectMeta, pods[1].ObjectMeta} })
	add("a typed list", typedList, func() []any { return []any{typedList.Items[0].ObjectMeta, typedList.Items[1].ObjectMeta} })
	add("a slice of interfaces", []metav1.Object{job}, func() []any { return []any{job.ObjectMeta} })
	u := &unstructured.Unstructured{}
	add("an empty unstructured object", u, func() []any { return []any{u.Object["metadata"]} })
	add("an unstructured list", unstructuredList, func() []any {
		return []any{unstructuredList.Items[0].Object["metadata"], unstructuredList.Items[1].Object["metadata"]}
	})
	add("an unstructured object that is a list", listAsMap, func() []any {
		return []any{listAsMap.Object["items"].([]any)[0].(map[string]any)["metadata"]}
	})
	m, n := map[string]any{}, map[string]any{"metadata": nil}
	add("a map", m, func() []any { return []any{m["metadata"]} })
	add("a map whose metadata is null, in an array", [1]map[string]any{n}, func() []any { return []any{n["metadata"]} })
	mixed := []any{&corev1.Pod{}, []any{map[string]any{}}}
	add("a mixture, with a list in the list", mixed, func() []any {
		return []any{mixed[0].(*corev1.Pod).ObjectMeta, mixed[1].([]any)[0].(map[string]any)["metadata"]}
	})
	add("an empty list", []*corev1.Pod(nil), func() []any { return nil })
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			noError(t, hierarchy.Adopt(handling(), test.objs))
			for _, got := range test.get() {
				if _, typed := got.(metav1.ObjectMeta); typed {
					equal(t, got, adopted())
				} else {
					equal(t, got, adoptedMap())
				}
			}
		})
	}
}

func TestAllOrNothing(t *testing.T) {
	first := &corev1.Pod{}
	second := map[string]any{"kind": "Job", "metadata": map[string]any{"name": "j", "labels": []any{"not a mapping"}}}
	err := hierarchy.Adopt(handling(), []any{first, []any{first, second}})
	if err == nil {
		t.Fatal("malformed labels were accepted")
	}
	equal(t, first, &corev1.Pod{})
	equal(t, second["metadata"].(map[string]any)["labels"], []any{"not a mapping"})
}

func TestLabelsOfMapsBecomeDecodedJSON(t *testing.T) {
	for name, labels := range map[string]any{
		"labels as decoded":  map[string]any{"mine": "1"},
		"labels as a Go map": map[string]string{"mine": "1"},
	} {
		t.Run(name, func(t *testing.T) {
			obj := map[string]any{"metadata": map[string]any{"labels": labels}}
			noError(t, hierarchy.Label(handling(), obj))
			equal(t, obj, map[string]any{"metadata": map[string]any{
				"labels": map[string]any{"mine": "1", "somelabel": "somevalue"},
			}})
		})
	}
}

func TestMapsWithTypedMetadata(t *testing.T) {
	byHand := map[string]any{"metadata": map[string]string{"name": "x"}}
	noError(t, hierarchy.AdjustNamespace(handling(), byHand))
	equal(t, byHand, map[string]any{"metadata": map[string]any{"name": "x", "namespace": "default"}})

	refs := map[string]any{"metadata": map[string]any{"ownerReferences": []metav1.OwnerReference{{UID: "other"}, reference()}}}
	noError(t, hierarchy.RemoveOwnerReference(handling(), refs))
	equal(t, refs, map[string]any{"metadata": map[string]any{"ownerReferences": []any{
		map[string]any{"apiVersion": "", "kind": "", "name": "", "uid": "other"},
	}}})
}

func TestUnchangedFieldsAreNotTouched(t *testing.T) {
	shared := map[string]string{"somelabel": "mine"}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "x", Labels: shared}}
	noError(t, hierarchy.Label(handling(), pod))
	noError(t, hierarchy.HarmonizeNaming(handling(), pod))
	noError(t, hierarchy.RemoveOwnerReference(handling(), pod))
	if reflect.ValueOf(pod.Labels).Pointer() != reflect.ValueOf(shared).Pointer() {
		t.Error("the labels were replaced")
	}
	obj := map[string]any{"kind": "Pod"}
	noError(t, hierarchy.Label(handling(), obj, hierarchy.Labels(nil)))
	noError(t, hierarchy.RemoveOwnerReference(handling(), obj))
	equal(t, obj, map[string]any{"kind": "Pod"})
}

func TestOwnerReferenceFlags(t *testing.T) {
	pod := &corev1.Pod{}
	noError(t, hierarchy.AppendOwnerReference(handling(), pod, hierarchy.NotController(), hierarchy.NotBlocking()))
	want := reference()
	want.Controller, want.BlockOwnerDeletion = new(false), new(false)
	equal(t, pod.OwnerReferences, []metav1.OwnerReference{want})

	other := hierarchy.Owner{APIVersion: "v1", Kind: "Node", Name: "n", UID: "uid-2"}
	noError(t, hierarchy.AppendOwnerReference(handling(), pod, hierarchy.OwnedBy(other)))
	if len(pod.OwnerReferences) != 2 || !*pod.OwnerReferences[1].Controller {
		t.Errorf("a second owner can be the controller: %v", pod.OwnerReferences)
	}
	noError(t, hierarchy.RemoveOwnerReference(handling(), pod))
	if len(pod.OwnerReferences) != 1 || pod.OwnerReferences[0].UID != "uid-2" {
		t.Errorf("only the owner's own reference is removed: %v", pod.OwnerReferences)
	}
}
