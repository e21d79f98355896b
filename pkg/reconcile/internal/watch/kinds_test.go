package watch

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kopf-go/kopf/pkg/model/selector"
	"github.com/kopf-go/kopf/pkg/reconcile/discovery"
)

// theme is a kind, and theThemes its resource.
var (
	theme     = schema.GroupKind{Kind: "ConfigMap"}
	theThemes = selector.Resource{Version: "v1", Plural: "configmaps", Kind: "ConfigMap", Namespaced: true, Preferred: true}
)

func TestClusterIsAskedRarelyForUnknownKinds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		kinds := &Kinds{Source: discovery.SourceFunc(func(context.Context) (discovery.Snapshot, error) {
			asked++
			time.Sleep(time.Millisecond)
			return discovery.Snapshot{}, nil
		})}
		var all sync.WaitGroup
		for range 100 {
			all.Go(func() {
				for range 3 {
					if _, err := kinds.FindKind(t.Context(), theme); !IsNotServed(err) {
						t.Errorf("got %v", err)
					}
				}
			})
		}
		all.Wait()
		if asked > 6 {
			t.Errorf("the cluster was asked %d times", asked)
		}
	})
}

// Somebody may have installed the definition a moment ago.
func TestAnswerThatIsOlderThanTheQuestionIsNotANo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var present discovery.Snapshot
		kinds := &Kinds{Source: discovery.SourceFunc(func(context.Context) (discovery.Snapshot, error) { return present, nil })}
		if _, err := kinds.FindKind(t.Context(), theme); !IsNotServed(err) {
			t.Fatalf("got %v", err)
		}
		present.Resources = []selector.Resource{theThemes}
		time.Sleep(time.Millisecond)
		if found, err := kinds.FindKind(t.Context(), theme); err != nil || found.Plural != "configmaps" {
			t.Errorf("got %v and %v", found, err)
		}
		if _, err := kinds.Find(t.Context(), theme.WithVersion("v1")); err != nil {
			t.Error(err)
		}
	})
}

// A scan that began before the question can be older than the definition.
func TestScanThatIsUnderWayIsNotANo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var present atomic.Pointer[discovery.Snapshot]
		present.Store(&discovery.Snapshot{})
		kinds := &Kinds{Source: discovery.SourceFunc(func(context.Context) (discovery.Snapshot, error) {
			old := *present.Load()
			time.Sleep(time.Second)
			return old, nil
		})}
		go func() { _, _ = kinds.FindKind(t.Context(), theme) }()
		time.Sleep(time.Millisecond)
		present.Store(&discovery.Snapshot{Resources: []selector.Resource{theThemes}})
		if found, err := kinds.FindKind(t.Context(), theme); err != nil || found.Plural != "configmaps" {
			t.Errorf("got %v and %v", found, err)
		}
	})
}

func TestNoAnswerIsNotANo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kinds := &Kinds{Source: discovery.SourceFunc(func(context.Context) (discovery.Snapshot, error) {
			return discovery.Snapshot{}, errors.New("connection refused")
		})}
		for range 3 {
			if _, err := kinds.FindKind(t.Context(), theme); err == nil || IsNotServed(err) {
				t.Errorf("got %v", err)
			}
			if _, err := kinds.FindKindAgain(t.Context(), theme); err == nil || IsNotServed(err) {
				t.Errorf("again: got %v", err)
			}
		}
	})
}

// The caller whose context the scan has can end.
func TestEndOfAnotherCallerIsNotANo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kinds := &Kinds{Source: discovery.SourceFunc(func(ctx context.Context) (discovery.Snapshot, error) {
			select {
			case <-ctx.Done():
				return discovery.Snapshot{}, ctx.Err()
			case <-time.After(time.Second):
				return discovery.Snapshot{Resources: []selector.Resource{theThemes}}, nil
			}
		})}
		short, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		go func() { _, _ = kinds.FindKind(short, theme) }()
		synctest.Wait()
		if found, err := kinds.FindKind(t.Context(), theme); err != nil || found.Plural != "configmaps" {
			t.Errorf("got %v and %v", found, err)
		}
	})
}

// The server behind an API group can be down. Its objects are not gone.
func TestKindOfAGroupThatCannotBeDiscoveredIsUnknown(t *testing.T) {
	down := schema.GroupVersion{Group: "metrics.example.com", Version: "v1"}
	kinds := &Kinds{Source: discovery.SourceFunc(func(context.Context) (discovery.Snapshot, error) {
		return discovery.Snapshot{Failed: map[schema.GroupVersion]error{down: errors.New("no endpoints")}}, nil
	})}
	_, err := kinds.FindKind(t.Context(), schema.GroupKind{Group: down.Group, Kind: "Probe"})
	if err == nil || IsNotServed(err) {
		t.Errorf("got %v", err)
	}
	if _, err := kinds.FindKind(t.Context(), schema.GroupKind{Kind: "ConfigMap"}); !IsNotServed(err) {
		t.Errorf("another group: %v", err)
	}
}
