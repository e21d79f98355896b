package childwatch

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kopf-go/kopf/pkg/model/convergence"
	"github.com/kopf-go/kopf/pkg/model/selector"
	"github.com/kopf-go/kopf/pkg/reconcile/discovery"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/kinds"
)

// A resource definition can be removed, with all its objects, after a handler has used it.
func TestKindThatIsNoLongerServedHasNoChildren(t *testing.T) {
	streams, err := watchedOf(discovery.Snapshot{}, schema.GroupKind{Kind: "Gone"})
	if err != nil || len(streams) != 0 {
		t.Errorf("got %v and %v", streams, err)
	}
}

// The server behind an API group can be down. Its objects are not gone.
func TestKindOfAGroupThatCannotBeDiscoveredIsNotGone(t *testing.T) {
	down := schema.GroupVersion{Group: "metrics.example.com", Version: "v1"}
	_, err := watchedOf(discovery.Snapshot{Failed: map[schema.GroupVersion]error{down: errors.New("no endpoints")}}, schema.GroupKind{Group: down.Group, Kind: "Probe"})
	if err == nil || kinds.IsNotServed(err) {
		t.Errorf("got %v", err)
	}
}

// A handler can ask for a watch in its grace period, when those that it has are over.
func TestNoWatchBeginsAfterTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		w := New(Config{Resources: &kinds.Served{Source: sourceOf(discovery.Snapshot{Resources: []selector.Resource{
			{Version: "v1", Plural: "configmaps", Kind: "ConfigMap", Namespaced: true, Preferred: true, Verbs: []string{"list", "watch"}},
		}})}})
		wait := w.Start(ctx, nil) // a watch that begins panics without a client
		cancel()
		wait()
		streams, err := w.Watch(t.Context(), "ns", convergence.Places{{GroupKind: schema.GroupKind{Kind: "ConfigMap"}}: {}})
		if err != nil || len(streams) != 1 {
			t.Errorf("got %v and %v", streams, err)
		}
		synctest.Wait()
	})
}

func sourceOf(present discovery.Snapshot) discovery.Source {
	return discovery.SourceFunc(func(context.Context) (discovery.Snapshot, error) { return present, nil })
}

// watchedOf asks for a watch of a kind in a cluster.
func watchedOf(present discovery.Snapshot, kind schema.GroupKind) ([]*Stream, error) {
	w := New(Config{Resources: &kinds.Served{Source: sourceOf(present)}})
	return w.Watch(context.Background(), "ns", convergence.Places{{GroupKind: kind}: {}})
}
