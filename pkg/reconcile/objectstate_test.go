package reconcile

import (
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"

	"github.com/kopf-go/kopf/pkg/model/stop"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/report"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/watch"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/write"
	"github.com/kopf-go/kopf/pkg/settings"
)

func TestStatesBelongToObjectsNotToNames(t *testing.T) {
	var s objectState
	s.initial.Store(true)
	s.resetFor("u-1")
	if !s.initial.Load() {
		t.Error("the first object of the name has a predecessor")
	}
	s.handled = true
	s.writes.NotOlderThan("7")
	s.resetFor("u-1")
	if !s.handled || !s.initial.Load() {
		t.Errorf("the state of the same object was reset: %+v", s.lifetime)
	}
	s.resetFor("u-2")
	if s.handled || s.writes.UID() != "u-2" || s.initial.Load() {
		t.Errorf("another object of the name has the state of the first: %+v", s.lifetime)
	}
}

func TestReportsAreMadeOncePerObject(t *testing.T) {
	var s objectState
	s.resetFor("u-1")
	if !s.reported.First("a") || s.reported.First("a") || !s.reported.First("b") {
		t.Error("a report is repeated or missing")
	}
	s.resetFor("u-2")
	if !s.reported.First("a") {
		t.Error("the report is missing for this object")
	}
}

// Another process can have handled the object before, or none.
func TestReopenedObjectIsLookedAtAgain(t *testing.T) {
	e := atRest(t, 1)
	makePass(t, e, e.keys[0])
	s := e.engine.objects.of(e.keys[0])
	version := s.reconciledVersion
	if s.initial.Load() || !s.isReconciledAt(version) {
		t.Fatal("the object is not at rest")
	}
	s.reopen()
	if !s.initial.Load() || s.isReconciledAt(version) {
		t.Errorf("initial: %t, at rest: %t", s.initial.Load(), s.isReconciledAt(version))
	}
}

func TestFinishedHandlersBelongToTheirObject(t *testing.T) {
	var s objectState
	s.resetFor("u-1")
	s.markFinished("resume")
	if !s.wasFinished("resume") || s.wasFinished("other") {
		t.Error("the wrong handler has finished")
	}
	s.resetFor("u-2")
	if s.wasFinished("resume") {
		t.Error("the handler has finished for another object")
	}
}

func TestObjectsHaveOneStateEach(t *testing.T) {
	var all objects
	var users sync.WaitGroup
	found := make([]*objectState, 16)
	for i := range found {
		users.Go(func() { found[i] = all.of(keyOf("a")) })
	}
	users.Wait()
	for _, m := range found {
		if m != found[0] {
			t.Fatal("one object has two states")
		}
	}
	if all.of(keyOf("b")) == found[0] {
		t.Error("two objects have one state")
	}
	all.remove(keyOf("a"), stop.Deleted)
	if all.of(keyOf("a")) == found[0] {
		t.Error("the state was not removed")
	}
}

func TestKeyStringNamesResourceAndObject(t *testing.T) {
	if got := keyOf("a").String(); got != "kopfexamples.v1.kopf.dev/ns/a" {
		t.Errorf("got %s", got)
	}
}

// Errors of the framework and of the API delay one object, longer each time.
func TestDelaysGrowWithFailures(t *testing.T) {
	tests := map[string]struct {
		delays []time.Duration
		want   []time.Duration
	}{
		"delays grow, and the last one repeats": {
			[]time.Duration{time.Second, 2 * time.Second}, []time.Duration{time.Second, 2 * time.Second, 2 * time.Second},
		},
		"no delays": {[]time.Duration{}, []time.Duration{0, 0}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := &Engine{Config: Config{Settings: settings.Settings{Queueing: settings.Queueing{ErrorDelays: test.delays}}}}
				p := &pass{
					target:  target{engine: e, resource: &resource{Resource: &watch.Resource{}}, object: &objectState{}, report: report.Reporter{Log: logr.Discard()}},
					session: &write.Session{},
				}
				for i, want := range test.want {
					if got := p.recordFailure(errors.New("the API is not there")); got != want || p.object.failures != uint16(i+1) || !p.object.notBefore.Equal(time.Now().Add(want)) {
						t.Errorf("attempt %d: got %s, %+v", i, got, p.object.lifetime)
					}
				}
			})
		})
	}
}
