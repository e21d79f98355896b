// Command stub writes to a sample object what an operator writes: a finalizer, the
// record of a handler, a result, and the diff base. It also posts an event. It
// replaces the operator in the tests of `make run`.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var steps = []string{
	`{"metadata":{"finalizers":["kopf.zalando.org/KopfFinalizerMarker"]}}`,
	`{"metadata":{"annotations":{"kopf.zalando.org/createFn":"{\"purpose\":\"create\",\"success\":true}"}}}`,
	`{"status":{"createFn":{"message":"hello"}}}`,
	`{"metadata":{"annotations":{"kopf.zalando.org/createFn":null,"kopf.zalando.org/last-handled-configuration":"{}\n"}}}`,
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	fmt.Println("pid", os.Getpid())
	if err := run(ctx); err != nil && ctx.Err() == nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Print("stopped in order")
}

func run(ctx context.Context) error {
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		return err
	}
	api, err := client.NewWithWatch(config, client.Options{})
	if err != nil {
		return err
	}
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion("kopf.dev/v1")
	list.SetKind("KopfExample")
	watch, err := api.Watch(ctx, list)
	if err != nil {
		return err
	}
	defer watch.Stop()
	for event := range watch.ResultChan() {
		object, ok := event.Object.(*unstructured.Unstructured)
		if !ok || event.Type != "ADDED" {
			continue
		}
		if err := handle(ctx, api, object); err != nil {
			return err
		}
	}
	return ctx.Err()
}

func handle(ctx context.Context, api client.Client, object *unstructured.Unstructured) error {
	event := &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Name: "stub", Namespace: object.GetNamespace()},
		InvolvedObject: corev1.ObjectReference{
			Kind: object.GetKind(), Namespace: object.GetNamespace(), Name: object.GetName(),
		},
		Type: "Normal", Reason: "Logging", Message: "Handler createFn succeeded.",
	}
	if err := api.Create(ctx, event); err != nil {
		return err
	}
	for _, step := range steps {
		patch := client.RawPatch(types.MergePatchType, []byte(step))
		if err := api.Patch(ctx, object, patch); err != nil {
			return err
		}
		if err := api.Status().Patch(ctx, object, patch); err != nil {
			return err
		}
	}
	return nil
}
