package kopf_test

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kopf-go/kopf/pkg/hierarchy"
)

// Label also labels objects inside of the child.
func ExampleLabel() {
	ctx := handling()
	deployment := &appsv1.Deployment{}
	err := hierarchy.Label(ctx, deployment, hierarchy.Nested("spec.template"))
	fmt.Println(deployment.Labels, deployment.Spec.Template.Labels, err)

	err = hierarchy.Label(ctx, deployment, hierarchy.Labels(map[string]string{"team": "green"}), hierarchy.Forced())
	fmt.Println(deployment.Labels, err)
	// Output:
	// map[team:blue] map[team:blue] <nil>
	// map[team:green] <nil>
}

// The API server completes names, unless they are strict.
func ExampleHarmonizeNaming() {
	ctx := handling()
	pod := &corev1.Pod{}
	err := hierarchy.HarmonizeNaming(ctx, pod)
	fmt.Println(pod.GenerateName, pod.Name, err)

	err = hierarchy.HarmonizeNaming(ctx, pod, hierarchy.Name("worker"), hierarchy.Strict(), hierarchy.Forced())
	fmt.Println(pod.GenerateName, pod.Name, err)
	// Output:
	// example-  <nil>
	//  worker <nil>
}

// A namespace that an object has already stays, unless it is forced.
func ExampleAdjustNamespace() {
	ctx := handling()
	pods := []corev1.Pod{{}, {ObjectMeta: metav1.ObjectMeta{Namespace: "mine"}}}
	err := hierarchy.AdjustNamespace(ctx, pods)
	fmt.Println(pods[0].Namespace, pods[1].Namespace, err)

	err = hierarchy.AdjustNamespace(ctx, pods, hierarchy.Namespace("other"), hierarchy.Forced())
	fmt.Println(pods[0].Namespace, pods[1].Namespace, err)
	// Output:
	// ns mine <nil>
	// other other <nil>
}

// An object can have several owners, of which one is the controller.
func ExampleAppendOwnerReference() {
	ctx := handling()
	node := &corev1.Node{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Node"}, // a handler's context knows the kind by the Go type
		ObjectMeta: metav1.ObjectMeta{Name: "node-1", UID: "u-2"},
	}
	pod := &corev1.Pod{}
	err := hierarchy.AppendOwnerReference(ctx, pod)
	fmt.Println(len(pod.OwnerReferences), err)
	err = hierarchy.AppendOwnerReference(ctx, pod, hierarchy.OwnedBy(node), hierarchy.NotController(), hierarchy.NotBlocking())
	for _, owner := range pod.OwnerReferences {
		fmt.Println(owner.Kind, owner.Name, *owner.Controller, *owner.BlockOwnerDeletion)
	}
	fmt.Println(err)

	err = hierarchy.RemoveOwnerReference(ctx, pod)
	fmt.Println(pod.OwnerReferences[0].Name, err)
	// Output:
	// 1 <nil>
	// Example example true true
	// Node node-1 false false
	// <nil>
	// node-1 <nil>
}

// References are for fields of objects that refer to others.
func ExampleBuildObjectReference() {
	node := map[string]any{"apiVersion": "v1", "kind": "Node", "metadata": map[string]any{"name": "node-1", "uid": "u-2"}}
	object, err := hierarchy.BuildObjectReference(node)
	fmt.Println(object.Kind, object.Name, err)
	owner, err := hierarchy.BuildOwnerReference(node, hierarchy.NotController())
	fmt.Println(owner.Kind, owner.Name, owner.UID, *owner.Controller, err)
	// Output:
	// Node node-1 <nil>
	// Node node-1 u-2 false <nil>
}
