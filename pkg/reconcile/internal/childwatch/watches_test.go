package childwatch

import (
	"context"
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kopf-go/kopf/pkg/model/convergence"
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

// watchedOf asks for a watch of a kind in a cluster.
func watchedOf(present discovery.Snapshot, kind schema.GroupKind) ([]*Stream, error) {
	source := discovery.SourceFunc(func(context.Context) (discovery.Snapshot, error) { return present, nil })
	w := New(Config{Resources: &kinds.Served{Source: source}})
	return w.Watch(context.Background(), "ns", convergence.Places{{GroupKind: kind}: {}})
}
