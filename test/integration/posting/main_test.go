// Package posting tests that a real API server accepts the posted events, and how it reacts if
// it does not.
package posting

import (
	"context"
	"strings"
	"testing"

	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/events"
	"github.com/kopf-go/kopf/test/operators"
	"github.com/kopf-go/kopf/test/testenv"
)

var cluster *testenv.Cluster

func TestMain(m *testing.M) { testenv.Main(m, &cluster, testenv.Options{}) }

// bench is a recorder that runs until the end of its test.
type bench struct {
	gomega.Gomega
	*events.Recorder
	t    *testing.T
	logs *operators.Journal
}

func newBench(t *testing.T, change func(*rest.Config)) *bench {
	config := cluster.Config()
	if change != nil {
		change(config)
	}
	clientset, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{Gomega: gomega.NewWithT(t), t: t, logs: &operators.Journal{}}
	b.Recorder = events.New(clientset.CoreV1(), events.Options{Component: component(t), Logger: b.logs.Logger()})
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- b.Start(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return b
}

// component distinguishes the events of this test from others.
func component(t *testing.T) string { return strings.ToLower(t.Name()) }

// events returns the events of the test in all namespaces.
func (b *bench) events() ([]corev1.Event, error) {
	var all corev1.EventList
	if err := cluster.Client().List(b.t.Context(), &all); err != nil {
		return nil, err
	}
	var own []corev1.Event
	for _, event := range all.Items {
		if event.Source.Component == component(b.t) {
			own = append(own, event)
		}
	}
	return own, nil
}

// example creates an object for events.
func (b *bench) example(namespace string) corev1.ObjectReference {
	obj := testenv.NewObject("KopfExample", namespace, "one", nil)
	b.Expect(cluster.Client().Create(b.t.Context(), obj)).To(gomega.Succeed())
	return corev1.ObjectReference{
		APIVersion: obj.GetAPIVersion(), Kind: obj.GetKind(), Name: obj.GetName(), Namespace: namespace, UID: obj.GetUID(),
	}
}

func (b *bench) remove(obj client.Object) {
	b.Expect(cluster.Client().Delete(b.t.Context(), obj)).To(gomega.Succeed())
}
