//go:build !race

// The race detector needs additional memory.

package reconcile

import (
	"fmt"
	"testing"
	"time"

	"github.com/kopf-go/kopf/pkg/model/handler"
	"github.com/kopf-go/kopf/pkg/model/registry"
	"github.com/kopf-go/kopf/pkg/model/selector"
)

// Thousands of handlers can wait. The shallow stack of a call takes 4 KB; with a run of the
// engine in it, it would take 8 KB.
func TestWaitingHandlerTakesLittleMemory(t *testing.T) {
	const objects, limit = 1000, 10_000 // bytes
	var j journal
	inCluster(t, func(r *registry.Registry) {
		r.Add(handler.Create(selector.New("as"), j.waiting(time.Hour), handler.ID("fn")))
	}, func(t *testing.T, c *cluster) {
		for i := range objects {
			raw := handledObject(t, i).Body().Raw()
			c.put("as", m{"metadata": m{"name": fmt.Sprint("object-", i), "namespace": "ns", "uid": fmt.Sprint(i), "labels": m{"app": "example"}}, "spec": raw["spec"]})
		}
		settle(time.Minute)
		if j.running != objects {
			t.Fatalf("%d handlers wait", j.running)
		}
		waiting := inUse()
		settle(2 * time.Hour)
		if each := (waiting - inUse()) / objects; each > limit {
			t.Errorf("a waiting handler takes %d bytes, more than %d", each, limit)
		}
	})
}
