package hierarchy_test

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"

	"github.com/kopf-go/kopf/pkg/hierarchy"
)

// In a handler, the context already has the handled object.
func handlerContext() context.Context {
	return hierarchy.WithOwner(context.Background(), hierarchy.Owner{
		APIVersion: "kopf.dev/v1", Kind: "KopfExample", Name: "example", Namespace: "default", UID: "6b931859",
		Labels: map[string]string{"team": "blue"},
	})
}

func show(obj any) {
	text, _ := yaml.Marshal(obj)
	fmt.Print(string(text))
}

func ExampleAdopt() {
	pod := &corev1.Pod{}
	if err := hierarchy.Adopt(handlerContext(), pod); err != nil {
		fmt.Println(err)
	}
	show(pod.ObjectMeta)
	// Output:
	// generateName: example-
	// labels:
	//   team: blue
	// namespace: default
	// ownerReferences:
	// - apiVersion: kopf.dev/v1
	//   blockOwnerDeletion: true
	//   controller: true
	//   kind: KopfExample
	//   name: example
	//   uid: 6b931859
}

func ExampleLabel() {
	deployment := &appsv1.Deployment{}
	deployment.Spec.Template.Labels = map[string]string{"team": "red"}
	err := hierarchy.Label(handlerContext(), deployment, hierarchy.Nested("spec.template"))
	fmt.Println(deployment.Labels, deployment.Spec.Template.Labels, err)

	err = hierarchy.Label(handlerContext(), deployment, hierarchy.Labels(map[string]string{"team": "green"}), hierarchy.Forced())
	fmt.Println(deployment.Labels, err)
	// Output:
	// map[team:blue] map[team:red] <nil>
	// map[team:green] <nil>
}

func ExampleHarmonizeNaming() {
	job := map[string]any{"kind": "Job"}
	if err := hierarchy.HarmonizeNaming(handlerContext(), job); err != nil {
		fmt.Println(err)
	}
	fmt.Println(job)
	if err := hierarchy.HarmonizeNaming(handlerContext(), job, hierarchy.Strict(), hierarchy.Forced()); err != nil {
		fmt.Println(err)
	}
	fmt.Println(job)
	// Output:
	// map[kind:Job metadata:map[generateName:example-]]
	// map[kind:Job metadata:map[name:example]]
}

func ExampleAdjustNamespace() {
	objs := []map[string]any{{"kind": "Job"}, {"kind": "Pod", "metadata": map[string]any{"namespace": "other"}}}
	err := hierarchy.AdjustNamespace(handlerContext(), objs)
	fmt.Println(objs, err)
	// Output:
	// [map[kind:Job metadata:map[namespace:default]] map[kind:Pod metadata:map[namespace:other]]] <nil>
}

func ExampleAppendOwnerReference() {
	node := &corev1.Node{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Node"},
		ObjectMeta: metav1.ObjectMeta{Name: "node1", UID: "a114fa89"},
	}
	pod := &corev1.Pod{}
	if err := hierarchy.AppendOwnerReference(handlerContext(), pod, hierarchy.OwnedBy(node), hierarchy.NotBlocking()); err != nil {
		fmt.Println(err)
	}
	show(pod.OwnerReferences)
	// Output:
	// - apiVersion: v1
	//   blockOwnerDeletion: false
	//   controller: true
	//   kind: Node
	//   name: node1
	//   uid: a114fa89
}

func ExampleRemoveOwnerReference() {
	pod := &corev1.Pod{}
	_ = hierarchy.Adopt(handlerContext(), pod)
	err := hierarchy.RemoveOwnerReference(handlerContext(), pod)
	fmt.Println(len(pod.OwnerReferences), err)
	// Output:
	// 0 <nil>
}

func ExampleOwnerFromScheme() {
	// A client returns typed objects without apiVersion and kind.
	parent := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "parent", Namespace: "ns", UID: "a114fa89"}}
	owner, err := hierarchy.OwnerFromScheme(parent, clientgoscheme.Scheme)
	fmt.Println(owner, err)
	// Output:
	// ConfigMap "ns/parent" <nil>
}
