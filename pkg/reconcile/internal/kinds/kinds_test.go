package kinds

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kopf-go/kopf/pkg/model/selector"
	"github.com/kopf-go/kopf/pkg/reconcile/discovery"
)

func TestClusterIsAskedRarelyForUnknownKinds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked, present := 0, discovery.Snapshot{}
		served := &Served{Source: discovery.SourceFunc(func(context.Context) (discovery.Snapshot, error) {
			asked++
			return present, nil
		})}
		kind := schema.GroupKind{Kind: "ConfigMap"}
		for range 3 {
			if _, err := served.FindKind(t.Context(), kind); !IsNotServed(err) {
				t.Errorf("got %v", err)
			}
		}
		if asked != 1 {
			t.Errorf("the cluster was asked %d times", asked)
		}
		present.Resources = []selector.Resource{{Version: "v1", Plural: "configmaps", Kind: "ConfigMap", Namespaced: true, Preferred: true}}
		time.Sleep(askInterval)
		if found, err := served.FindKind(t.Context(), kind); err != nil || found.Plural != "configmaps" {
			t.Errorf("got %v and %v", found, err)
		}
		if _, err := served.Find(t.Context(), kind.WithVersion("v1")); err != nil || asked != 2 {
			t.Errorf("got %v after %d requests", err, asked)
		}
	})
}

// The server behind an API group can be down. Its objects are not gone.
func TestKindOfAGroupThatCannotBeDiscoveredIsUnknown(t *testing.T) {
	down := schema.GroupVersion{Group: "metrics.example.com", Version: "v1"}
	served := &Served{Source: discovery.SourceFunc(func(context.Context) (discovery.Snapshot, error) {
		return discovery.Snapshot{Failed: map[schema.GroupVersion]error{down: errors.New("no endpoints")}}, nil
	})}
	_, err := served.FindKind(t.Context(), schema.GroupKind{Group: down.Group, Kind: "Probe"})
	if err == nil || IsNotServed(err) {
		t.Errorf("got %v", err)
	}
	if _, err := served.FindKind(t.Context(), schema.GroupKind{Kind: "ConfigMap"}); !IsNotServed(err) {
		t.Errorf("another group: %v", err)
	}
}
