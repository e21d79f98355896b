package converge

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kopf-go/kopf/pkg/model/convergence"
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
			if _, err := served.FindKind(t.Context(), kind); !isNotServed(err) {
				t.Errorf("got %v", err)
			}
		}
		if asked != 1 {
			t.Errorf("the cluster was asked %d times", asked)
		}
		present.Resources = []selector.Resource{configMaps}
		time.Sleep(askInterval)
		if found, err := served.FindKind(t.Context(), kind); err != nil || found.Plural != "configmaps" {
			t.Errorf("got %v and %v", found, err)
		}
		if _, err := served.Find(t.Context(), kind.WithVersion("v1")); err != nil || asked != 2 {
			t.Errorf("got %v after %d requests", err, asked)
		}
	})
}

// A resource definition can be removed, with all its objects, after a handler has used it.
func TestKindThatIsNoLongerServedHasNoChildren(t *testing.T) {
	source := discovery.SourceFunc(func(context.Context) (discovery.Snapshot, error) { return discovery.Snapshot{}, nil })
	c := New(Config{Resources: &Served{Source: source}})
	streams, err := c.watch(t.Context(), Parent{}, convergence.Places{{GroupKind: schema.GroupKind{Kind: "Gone"}}: {}})
	if err != nil || len(streams) != 0 {
		t.Errorf("got %v and %v", streams, err)
	}
}
