// This example shows peering: of two operators for the same objects, the one with the higher
// priority works, and the other one is paused. Start this program twice, the second time
// with --dev, as on a developer's machine, or with any higher priority.
//
//	make run EXAMPLE=06-peering
//	go run ./examples/06-peering --dev     # in another terminal, on the same cluster
//
// Replicas of one deployment do not need peering: they elect a leader.
package main

import (
	"context"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/model/stop"
)

const peeringName = "kopf-example"

// Commands such as rbac and peers know these settings. They would not know those of a startup
// handler.
func configure(s *kopf.Settings) {
	s.Peering.Name = peeringName
	s.Peering.Mandatory = true            // without the object, no operator works
	s.Peering.Lifetime = 10 * time.Second // how long a killed operator blocks the others
}

// Operators meet in an object: a ClusterKopfPeering, or a KopfPeering in their namespace.
// Usually the object is installed with the operators.
func createPeering(ctx context.Context, s *kopf.Startup) error {
	object := &unstructured.Unstructured{}
	object.SetAPIVersion("kopf.dev/v1")
	object.SetKind("ClusterKopfPeering")
	object.SetName(peeringName)
	if namespaces := s.Settings().Scope.Namespaces; len(namespaces) > 0 {
		object.SetKind("KopfPeering")
		object.SetNamespace(namespaces[0])
	}
	return client.IgnoreAlreadyExists(s.Client().Create(ctx, object))
}

// A change is handled once: by the active operator, or by the next one that becomes
// active.
func handleFn(_ context.Context, c *kopf.Change) error {
	c.Logger().Info("This operator handles the object.", "reason", c.Reason())
	c.SetResult(map[string]any{"by": os.Getpid()}) // -> status.handleFn
	return nil
}

// Daemons stop when the operator is paused, and start again afterwards.
func watchFn(_ context.Context, t *kopf.Task) error {
	t.Logger().Info("This operator is active.")
	for !t.Wait(time.Minute) {
		t.Logger().Info("This operator is still active.")
	}
	if t.StopReason().Has(stop.Paused) {
		t.Logger().Info("This operator yields to another one.")
	}
	return nil
}

func main() {
	kex := kopf.Resource("kopfexamples")
	kopf.Configure(configure)
	kopf.OnStartup(createPeering)
	kopf.Needs(kopf.Resource("kopf.dev", "kopfpeerings"), "create")
	kopf.Needs(kopf.Resource("kopf.dev", "clusterkopfpeerings"), "create")
	kopf.OnCreate(kex, handleFn)
	kopf.OnUpdate(kex, handleFn)
	kopf.Daemon(kex, watchFn)
	kopf.Main()
}
