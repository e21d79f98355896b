package watch

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kopf-go/kopf/pkg/model/convergence"
	"github.com/kopf-go/kopf/pkg/model/selector"
	"github.com/kopf-go/kopf/pkg/reconcile/discovery"
	"github.com/kopf-go/kopf/pkg/settings"
	"github.com/kopf-go/kopf/pkg/shards"
)

// A resource definition can be removed, with all its objects, after a handler has used it.
func TestKindThatIsNoLongerServedHasNoChildren(t *testing.T) {
	streams, err := watchedIn(t, discovery.Snapshot{}, schema.GroupKind{Kind: "Gone"})
	if err != nil || len(streams) != 0 {
		t.Errorf("got %v and %v", streams, err)
	}
}

// The server behind an API group can be down. Its objects are not gone.
func TestKindOfAGroupThatCannotBeDiscoveredIsNotGone(t *testing.T) {
	down := schema.GroupVersion{Group: "metrics.example.com", Version: "v1"}
	_, err := watchedIn(t, discovery.Snapshot{Failed: map[schema.GroupVersion]error{down: errors.New("no endpoints")}}, schema.GroupKind{Group: down.Group, Kind: "Probe"})
	if err == nil || IsNotServed(err) {
		t.Errorf("got %v", err)
	}
}

// A handler can ask for a watch in its grace period, when those that it has are over.
func TestNoWatchOfChildrenBeginsAfterTheEnd(t *testing.T) {
	streams, err := watchedIn(t, discovery.Snapshot{Resources: []selector.Resource{
		{Version: "v1", Plural: "configmaps", Kind: "ConfigMap", Namespaced: true, Preferred: true, Verbs: []string{"list", "watch"}},
	}}, schema.GroupKind{Kind: "ConfigMap"})
	if err != nil || len(streams) != 1 {
		t.Errorf("got %v and %v", streams, err)
	}
}

// watchedIn asks for a watch of a kind in a cluster after the end of the operator. A stream that begins panics
// without a client.
func watchedIn(t *testing.T, present discovery.Snapshot, kind schema.GroupKind) ([]*ChildStream, error) {
	t.Helper()
	s := settings.Settings{}.WithDefaults()
	s.Scanning.Disabled = true
	w := New(Config{
		Settings: s, Logger: logr.Discard(), Consumer: &recorder{},
		Source: discovery.SourceFunc(func(context.Context) (discovery.Snapshot, error) { return present, nil }),
	})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := w.Run(ctx, nil); err != nil {
		t.Fatal(err)
	}
	return w.WatchChildren(t.Context(), "ns", convergence.Places{{GroupKind: kind}: {}})
}

func TestChildrenAreShownToTheConsumer(t *testing.T) {
	one := func(version string) *unstructured.Unstructured {
		u := &unstructured.Unstructured{}
		u.SetName("one")
		u.SetResourceVersion(version)
		return u
	}
	r := &recorder{}
	scope := childScope{kind: schema.GroupKind{Kind: "ConfigMap"}, namespace: "ns"}
	s := newStream("ns", nil, shownChildren{r, scope})
	for _, step := range []struct {
		happens func() error
		want    string
	}{
		{func() error { return s.Replace([]any{one("7")}, "7") }, "REPLACED 1 AT 7"},
		{func() error { return s.Update(one("8")) }, "CHILD one 8"},
		{func() error { return s.Delete(one("9")) }, "CHILD one 9 IS GONE"},
		{func() error { return s.Replace(nil, "9") }, "REPLACED 0 AT 9"},
		{func() error { return s.Replace(nil, "3") }, "REPLACED 0 AT 3, ANEW"}, // a backup
	} {
		r.events = nil
		if err := step.happens(); err != nil || len(r.events) != 1 || r.events[0] != step.want {
			t.Errorf("got %q and %v, want %q", r.events, err, step.want)
		}
	}
	if !s.listed.isSet() {
		t.Error("it is not listed")
	}
}

func TestWatchCoversTheChildrenInItsScope(t *testing.T) {
	kind := schema.GroupKind{Kind: "ConfigMap"}
	child := convergence.ChildKey{GroupKind: kind, Namespace: "ns", Name: "one"}
	for scope, want := range map[childScope]bool{
		{kind, "ns"}: true, {kind, ""}: true, {kind, "other"}: false, {schema.GroupKind{Kind: "Secret"}, "ns"}: false,
	} {
		if got := scope.covers(child); got != want {
			t.Errorf("%+v: got %t", scope, got)
		}
	}
}

// A call waits for the first list of a watch, until it is told why there is none, or until it must not begin anymore.
func TestTheFirstListOfChildrenIsAwaited(t *testing.T) {
	refused := errors.New("no role allows it")
	over := make(chan struct{})
	close(over)
	for name, test := range map[string]struct {
		happens  func(s *ChildStream)
		stopping chan struct{}
		want     error
	}{
		"it is listed":     {happens: func(s *ChildStream) { s.listed.set() }},
		"it stops":         {happens: func(*ChildStream) {}, stopping: over, want: ErrNotAwaited},
		"it is refused":    {happens: func(s *ChildStream) { s.attempts.err = refused }, want: refused},
		"it takes so long": {happens: func(*ChildStream) {}, want: context.DeadlineExceeded},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &ChildStream{stream: newStream("ns", nil, shownChildren{&recorder{}, childScope{}})}
			test.happens(s)
			if err := s.Wait(t.Context(), test.stopping); !errors.Is(err, test.want) {
				t.Errorf("%s: got %v, want %v", name, err, test.want)
			}
		})
	}
}

// A replica that gives up shards forgets the children of their objects, once for all shards that it gives up together.
func TestHiddenShardsLeaveTheirChildren(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := settings.Settings{}.WithDefaults()
		s.Scanning.Disabled = true
		r := &recorder{}
		w := New(Config{
			Settings: s, Logger: logr.Discard(), Consumer: r, Division: shards.Division{Number: 4},
			Source: discovery.SourceFunc(func(context.Context) (discovery.Snapshot, error) { return discovery.Snapshot{}, nil }),
		})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- w.Run(ctx, nil) }()
		synctest.Wait()
		w.Hide(1)
		w.Hide(2)
		time.Sleep(gatherLost)
		synctest.Wait()
		if want := []string{"CHILDREN LEFT"}; !slices.Equal(r.events, want) {
			t.Errorf("got %q, want %q", r.events, want)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
