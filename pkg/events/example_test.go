package events_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/kopf-go/kopf/pkg/events"
	"github.com/kopf-go/kopf/pkg/hierarchy"
)

// printer prints the events instead of posting them.
type printer struct{}

func (printer) Post(ref corev1.ObjectReference, eventType, reason, message string) {
	fmt.Println(ref.Kind, ref.Name, eventType, reason, message)
}

func ExampleEvent() {
	// The engine gives this context to the handlers.
	ctx := events.WithRecorder(context.Background(), printer{})
	ctx = hierarchy.WithOwner(ctx, hierarchy.Owner{APIVersion: "kopf.dev/v1", Kind: "KopfExample", Name: "example", Namespace: "ns"})

	if err := events.Event(ctx, nil, "SomeType", "SomeReason", "About the handled object."); err != nil {
		fmt.Println(err)
	}
	pod := map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "pod1", "namespace": "ns"}}
	if err := events.Info(ctx, pod, "Created", "About another object."); err != nil {
		fmt.Println(err)
	}
	// Output:
	// KopfExample example SomeType SomeReason About the handled object.
	// Pod pod1 Normal Created About another object.
}

func ExampleNew() {
	server := newServer() // in production, a clientset's CoreV1()
	recorder := events.New(server, events.Options{Component: "my-operator"})

	ctx, stop := context.WithCancel(context.Background())
	recorder.Post(corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Name: "pod1", Namespace: "ns"}, "Normal", "Created", "Hello!")
	stop()                     // waiting events are still posted
	err := recorder.Start(ctx) // in production, mgr.Add(recorder)
	fmt.Println(recorder.Stats().Posted, err)
	// Output:
	// 1 <nil>
}
