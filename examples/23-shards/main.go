// This example divides its objects among replicas that all work. Each replica handles the objects of some shards, and the
// replicas agree by Leases on who holds which shard. Nothing on an object says where it belongs.
//
//	make run EXAMPLE=23-shards
//
// Without arguments, the program starts three replicas of itself, kills one of them, and tells which objects move where.
// With arguments, it is one replica, as in a deployment. You can add one on the same cluster:
//
//	REPLICA=another go run ./examples/23-shards -n default
package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/kopf-go/kopf/pkg/kopf"
)

// replica names this process in the objects. In a deployment, it is the name of the pod.
var replica = cmp.Or(os.Getenv("REPLICA"), fmt.Sprint("process ", os.Getpid()))

// serve is called for new objects, and for those that this replica takes over from another one.
func serve(_ context.Context, c *kopf.Change) error {
	c.Logger().Info("This replica handles the object.", "replica", replica, "reason", c.Reason())
	c.SetResult(map[string]any{"by": replica}) // -> status.serve
	return nil
}

func configure(s *kopf.Settings) {
	s.Name = "shards.examples.kopf.dev"
	s.Replicas.Shards = 12
	// How long the objects of a killed replica wait. The defaults suit larger clusters: 15 s, 10 s, and 2 s.
	s.Replicas.LeaseDuration = 6 * time.Second
	s.Replicas.RenewDeadline = 4 * time.Second
	s.Replicas.RetryPeriod = time.Second
}

func main() {
	if len(os.Args) == 1 {
		if err := show(ctrl.SetupSignalHandler()); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	examples := kopf.Resource("kopfexamples")
	kopf.Configure(configure)
	kopf.OnCreate(examples, serve)
	kopf.OnResume(examples, serve)
	kopf.Main()
}
