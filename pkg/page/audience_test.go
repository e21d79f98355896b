package page

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// watched counts the watches that run.
type watched struct{ running, started atomic.Int32 }

func (w *watched) watch(ctx context.Context) {
	w.running.Add(1)
	w.started.Add(1)
	<-ctx.Done()
	w.running.Add(-1)
}

func TestObjectsAreWatchedWhileSomebodyLooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		of := &watched{}
		a := newAudience(of.watch)
		expect := func(when string, running, started int32) {
			t.Helper()
			synctest.Wait()
			if isRunning, wasStarted := of.running.Load(), of.started.Load(); isRunning != running || wasStarted != started {
				t.Errorf("%s: %d watches run, and %d were started", when, isRunning, wasStarted)
			}
		}
		expect("nobody looks", 0, 0)
		a.look()
		a.look()
		expect("a page was loaded", 1, 1)
		leave := a.join(&viewer{changed: make(chan struct{}, 1)})
		time.Sleep(time.Hour)
		expect("the page is open", 1, 1)
		leave()
		time.Sleep(patience - time.Second)
		expect("it was just closed", 1, 1)
		a.look()
		time.Sleep(patience - time.Second)
		expect("another page was loaded", 1, 1)
		time.Sleep(2 * time.Second)
		expect("nobody has come", 0, 1)
		a.join(&viewer{changed: make(chan struct{}, 1)})
		expect("somebody comes again", 1, 2)
		a.close()
		a.close()
		expect("the page has ended", 0, 2)
		a.look()
		expect("it has ended for good", 0, 2)
	})
}

func TestViewersHearOfWhatTheyLookAt(t *testing.T) {
	one, other := types.NamespacedName{Namespace: "default", Name: "one"}, types.NamespacedName{Namespace: "default", Name: "other"}
	all, list, elsewhere, object := &viewer{}, &viewer{resource: "things"}, &viewer{resource: "others"}, &viewer{resource: "things", object: one}
	for name, test := range map[string]struct {
		object  types.NamespacedName
		isOther bool
		hear    []*viewer
	}{
		"another row":                {one, true, []*viewer{all, list, object}},
		"the same row":               {one, false, []*viewer{object}},
		"another row of another one": {other, true, []*viewer{all, list}},
		"a list":                     {types.NamespacedName{}, true, []*viewer{all, list, object}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := newAudience((&watched{}).watch)
				defer a.close()
				viewers := []*viewer{all, list, elsewhere, object}
				for _, v := range viewers {
					v.changed = make(chan struct{}, 1)
					a.join(v)
				}
				for range 3 { // a viewer that is slow hears it once
					a.tell("things", test.object, test.isOther)
				}
				for i, v := range viewers {
					want := 0
					for _, hears := range test.hear {
						if hears == v {
							want = 1
						}
					}
					if len(v.changed) != want {
						t.Errorf("the viewer %d hears %d times", i, len(v.changed))
					}
				}
			})
		})
	}
}
