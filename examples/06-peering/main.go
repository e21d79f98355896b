// Peering: two operators of the same objects, of which the more important one works
// and the other one waits. Start this program twice: the second time with --dev, as
// on a developer's machine, or with any higher priority.
//
//	make run EXAMPLE=06-peering
//	go run ./examples/06-peering --dev     # in another terminal, on the same cluster
//
// Replicas of one deployment are another matter: they elect a leader.
package main

import (
	"context"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/kopf"
)

const meeting = "kopf-example"

// Operators meet in an object: a ClusterKopfPeering, or a KopfPeering of their
// namespace. Usually it is installed with the operators.
func meet(ctx context.Context, s *kopf.Startup) error {
	s.Settings().Peering.Name = meeting
	s.Settings().Peering.Mandatory = true            // without the object, nobody works
	s.Settings().Peering.Lifetime = 10 * time.Second // how long one that is killed keeps others waiting
	place := &unstructured.Unstructured{}
	place.SetAPIVersion("kopf.dev/v1")
	place.SetKind("ClusterKopfPeering")
	place.SetName(meeting)
	if namespaces := s.Settings().Scope.Namespaces; len(namespaces) > 0 {
		place.SetKind("KopfPeering")
		place.SetNamespace(namespaces[0])
	}
	return client.IgnoreAlreadyExists(s.Client().Create(ctx, place))
}

// A change is handled once: by the operator that is active, or else by the next one
// that will be.
func handleFn(_ context.Context, c *kopf.Change) error {
	c.Logger().Info("The object is handled by this operator.", "reason", c.Reason())
	c.SetResult(map[string]any{"by": os.Getpid()}) // -> status.handleFn
	return nil
}

// Daemons stop for a pause, and start again after it.
func watchFn(_ context.Context, t *kopf.Task) error {
	t.Logger().Info("This operator is active.")
	for !t.Wait(time.Minute) {
		t.Logger().Info("This operator is still active.")
	}
	if t.StopReason().Has(kopf.StopPaused) {
		t.Logger().Info("This operator gives way to another one.")
	}
	return nil
}

func main() {
	kex := kopf.Resource("kopfexamples")
	kopf.OnStartup(meet)
	kopf.OnCreate(kex, handleFn)
	kopf.OnUpdate(kex, handleFn)
	kopf.Daemon(kex, watchFn)
	kopf.Main()
}
