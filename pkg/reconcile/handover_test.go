package reconcile

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/go-logr/logr"

	"github.com/kopf-go/kopf/pkg/reconcile/internal/kube"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/report"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/watch"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/write"
)

func TestCatchUpDetectsStaleVersions(t *testing.T) {
	tests := map[string]struct {
		now      kube.Version
		stale    bool // the seen version must not be handled
		released bool // the object no longer exists
	}{
		"the last version was seen":        {kube.Version{UID: "u-1", ResourceVersion: "7"}, false, false},
		"a later version exists":           {kube.Version{UID: "u-1", ResourceVersion: "8"}, true, false},
		"the object is gone":               {kube.Version{}, false, true},
		"the object was replaced":          {kube.Version{UID: "u-2", ResourceVersion: "9"}, true, true},
		"versions are compared as numbers": {kube.Version{UID: "u-1", ResourceVersion: "10"}, true, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var s objectState
			s.catchUp(seen(t, "7"), test.now)
			if isStale(t, &s, "7") != test.stale && !test.released || s.writes.Gone() != test.released {
				t.Errorf("got %+v", s.lifetime)
			}
		})
	}
}

func TestListedVersionIsKeptUntilTheWatchShowsIt(t *testing.T) {
	var s objectState
	s.catchUp(nil, kube.Version{UID: "u-1", ResourceVersion: "8"})
	s.resetFor(types.UID("u-1")) // the watch shows its creation
	if !isStale(t, &s, "7") || isStale(t, &s, "8") || isStale(t, &s, "9") {
		t.Errorf("got %+v", s.lifetime)
	}
}

// isStale reports whether a pass must wait for a later version than this.
func isStale(t *testing.T, s *objectState, version string) bool {
	t.Helper()
	w := write.New(write.Config{ConsistencyTimeout: time.Minute})
	session := w.Open(&s.writes, write.Target{}, report.Reporter{Log: logr.Discard()})
	freshness, err := session.Refresh(t.Context(), seen(t, version))
	if err != nil {
		t.Fatal(err)
	}
	return !freshness.Fresh
}

func TestAPauseCanBeginBeforeTheOperatorWorks(t *testing.T) {
	var e Engine
	e.SetPaused(true)
	if !e.pause.isPaused() {
		t.Error("it is not paused")
	}
	stopped, stop := context.WithCancel(t.Context())
	stop()
	if active, end, _ := e.pause.wait(stopped); active != nil || end != nil {
		t.Error("it works after it was stopped")
	}
	e.SetPaused(false)
	active, end, others := e.pause.wait(t.Context())
	if e.pause.isPaused() || active.Err() != nil || !others {
		t.Errorf("after the pause: %v, worked by others: %t", active.Err(), others)
	}
	end()
}

// Only a pause lets others work, and only the first period of work after it has to know.
func TestOthersWorkDuringAPauseOnly(t *testing.T) {
	var e Engine
	works := func(want bool) context.Context {
		t.Helper()
		active, end, others := e.pause.wait(t.Context())
		t.Cleanup(end)
		if active.Err() != nil || others != want {
			t.Errorf("got %v, worked by others: %t, want %t", active.Err(), others, want)
		}
		return active
	}
	e.SetPaused(false)
	active := works(false)
	e.SetPaused(true)
	if active.Err() == nil {
		t.Error("it works during the pause")
	}
	synctest.Test(t, func(t *testing.T) { // repeated signals of the same pause
		e.SetPaused(false)
		e.SetPaused(true)
		began := make(chan context.Context)
		go func() {
			active, _, _ := e.pause.wait(t.Context())
			began <- active
		}()
		synctest.Wait()
		e.SetPaused(true)
		e.SetPaused(false)
		e.SetPaused(false)
		if active := <-began; active == nil || active.Err() != nil {
			t.Error("it does not work after the pause")
		}
	})
	e.SetPaused(true)
	e.SetPaused(false)
	works(true)
	works(false)
}

// An object that the watch has not shown yet belongs to a shard, too.
func TestEveryListedObjectHasAUID(t *testing.T) {
	for name, test := range map[string]struct {
		version watch.Version
		want    types.UID
	}{
		"not seen yet": {watch.Version{Now: kube.Version{UID: "u-2"}}, "u-2"},
		"gone":         {watch.Version{Seen: seen(t, "7")}, "u-1"},
		"replaced":     {watch.Version{Seen: seen(t, "7"), Now: kube.Version{UID: "u-2"}}, "u-2"},
		"unknown":      {watch.Version{}, ""},
	} {
		if got := test.version.UID(); got != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}
