package virtual

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/kopftest"
	"github.com/kopf-go/kopf/pkg/model/stop"
)

// companion is a daemon that knows whether it runs, and why it was stopped. It ends a while later.
type companion struct {
	mu      sync.Mutex
	running bool
	reason  stop.Reason
}

func (c *companion) set(running bool, reason stop.Reason) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running = running
	c.reason = reason
}

func (c *companion) state() (running bool, reason stop.Reason) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.running, c.reason
}

func (c *companion) declare(r *kopf.Registry, farewell time.Duration) {
	r.Daemon(examples, func(_ context.Context, task *kopf.Task) error {
		c.set(true, 0)
		<-task.Stopped()
		c.set(true, task.StopReason())
		time.Sleep(farewell)
		c.set(false, task.StopReason())
		return nil
	}, kopf.ID("daemon"), labeled("accompanied"), kopf.CancellationBackoff(time.Hour))
}

const (
	toAccompanied = `{"metadata": {"labels": {"is": "accompanied"}}}`
	toAlone       = `{"metadata": {"labels": {"is": "alone"}}}`
	toTimed       = `{"metadata": {"labels": {"is": "timed"}}}`
)

// A daemon needs the finalizer while it runs, and a timer never does.
func TestDaemonsNeedTheFinalizerWhileTheyRun(t *testing.T) {
	var daemon companion
	withOperator(t, func(r *kopf.Registry) {
		daemon.declare(r, 10*time.Minute)
		r.Timer(examples, func(context.Context, *kopf.Tick) error { return nil }, kopf.ID("timer"), kopf.Interval(time.Hour), labeled("timed"))
	}, func(t *testing.T, h *kopftest.Harness) {
		one := newExample()
		h.Create(one)
		expect := func(when string, finalizers int, isRunning bool) {
			t.Helper()
			h.Advance(time.Minute)
			h.Get(one)
			running, _ := daemon.state()
			if got := one.GetFinalizers(); len(got) != finalizers || running != isRunning {
				t.Errorf("%s: got the finalizers %q; the daemon runs: %t", when, got, running)
			}
		}
		expect("nothing matches", 0, false)
		h.Patch(one, toTimed)
		expect("a timer matches", 0, false)
		h.Patch(one, toAccompanied)
		expect("a daemon matches", 1, true)
		h.Patch(one, toAlone)
		expect("a daemon runs that does not match anymore", 1, true)
		h.Advance(10 * time.Minute)
		expect("the daemon has ended", 0, false)
		if _, reason := daemon.state(); !reason.Has(stop.Mismatch) {
			t.Errorf("got %v", reason)
		}
		h.Patch(one, toAccompanied)
		expect("a daemon matches again", 1, true)
		h.Delete(one)
		expect("a daemon runs while its object is being deleted", 1, true)
		h.Patch(one, `{"metadata": {"annotations": {"example.com/note": "x"}}}`) // others change the object meanwhile
		h.Advance(10 * time.Minute)
		running, reason := daemon.state()
		if h.Exists(one) || running || !reason.Has(stop.Deleted) {
			t.Errorf("the object exists: %t; the daemon runs: %t, %v", h.Exists(one), running, reason)
		}
	})
}

// The deletion handlers have ended long before the daemon, which may still need the object.
func TestDeletionWaitsForDaemonsAfterItsHandlers(t *testing.T) {
	var daemon companion
	withOperator(t, func(r *kopf.Registry) {
		daemon.declare(r, 10*time.Minute)
		r.OnDelete(examples, ignore, kopf.ID("delete"))
	}, func(t *testing.T, h *kopftest.Harness) {
		createAll(h, "accompanied", "one")
		h.Advance(time.Minute)
		one := exampleNamed("one")
		h.Delete(one)
		h.Advance(time.Minute)
		running, _ := daemon.state()
		if !running || !h.Exists(one) || len(h.Calls("delete")) != 1 {
			t.Errorf("the daemon runs: %t; the object exists: %t, after %v", running, h.Exists(one), h.Calls("delete"))
		}
		h.Advance(10 * time.Minute)
		running, _ = daemon.state()
		if running || h.Exists(one) || len(h.Calls("delete")) != 1 {
			t.Errorf("the daemon runs: %t; the object exists: %t, after %v", running, h.Exists(one), h.Calls("delete"))
		}
	})
}

// A daemon that has returned is not called again, so nothing must wait for it.
func TestADaemonThatHasReturnedNeedsNoFinalizer(t *testing.T) {
	withOperator(t, func(r *kopf.Registry) {
		r.Daemon(examples, func(context.Context, *kopf.Task) error { time.Sleep(time.Hour); return nil }, kopf.ID("daemon"))
	}, func(t *testing.T, h *kopftest.Harness) {
		one := newExample()
		h.Create(one)
		h.Advance(time.Minute)
		if h.Get(one); len(one.GetFinalizers()) != 1 {
			t.Errorf("while it runs: %q", one.GetFinalizers())
		}
		h.Advance(2 * time.Hour)
		if h.Get(one); len(one.GetFinalizers()) != 0 || len(h.Calls("daemon")) != 1 {
			t.Errorf("afterwards: %q, and the calls %v", one.GetFinalizers(), h.Calls("daemon"))
		}
	})
}

// A suspended object is left alone, also by its daemons.
func TestSuspensionStopsDaemons(t *testing.T) {
	var daemon companion
	withOperator(t, func(r *kopf.Registry) {
		daemon.declare(r, 0)
	}, func(t *testing.T, h *kopftest.Harness) {
		createAll(h, "accompanied", "one")
		h.Advance(time.Minute)
		h.Patch(exampleNamed("one"), `{"metadata": {"annotations": {"kopf.zalando.org/request-suspend": "forever"}}}`)
		h.Advance(time.Minute)
		if running, reason := daemon.state(); running || !reason.Has(stop.Paused) {
			t.Errorf("the daemon runs: %t, %v", running, reason)
		}
	})
}

func TestObjectWithoutMatchingHandlersIsNotTouched(t *testing.T) {
	withOperator(t, func(r *kopf.Registry) {
		r.OnCreate(examples, ignore, kopf.ID("create"), labeled("wanted"))
		r.OnDelete(examples, ignore, kopf.ID("delete"), labeled("wanted"))
	}, func(t *testing.T, h *kopftest.Harness) {
		h.Create(newExample())
		h.Advance(time.Hour)
		if got := h.Writes(); len(got) > 0 {
			t.Errorf("got %v", got)
		}
	})
}

// A finalizer that no handler needs is removed, whether or not the first write succeeds.
func TestUnneededFinalizerIsRemoved(t *testing.T) {
	for name, failures := range map[string]int{"at once": 0, "after a failure": 1} {
		t.Run(name, func(t *testing.T) {
			withOperator(t, func(r *kopf.Registry) {
				r.OnDelete(examples, ignore, kopf.ID("delete"), labeled("wanted"))
			}, func(t *testing.T, h *kopftest.Harness) {
				createAll(h, "wanted", "one")
				h.Advance(time.Minute)
				one := exampleNamed("one")
				if h.Get(one); len(one.GetFinalizers()) != 1 {
					t.Errorf("got %q", one.GetFinalizers())
				}
				if failures > 0 {
					h.Fail(kopftest.Requests{Verb: "patch", Resource: "kopfexamples"}, failures, errConnection)
				}
				h.Patch(one, `{"metadata": {"labels": {"is": "not"}}}`)
				h.Advance(time.Hour)
				if h.Get(one); len(one.GetFinalizers()) != 0 {
					t.Errorf("got %q", one.GetFinalizers())
				}
			})
		})
	}
}

// An object gets its finalizer before any handler is called.
func TestObjectGetsItsFinalizerBeforeAnyHandler(t *testing.T) {
	for name, failure := range map[string]error{"it is written": nil, "the write fails": errConnection, "the write is a conflict": errConflict} {
		t.Run(name, func(t *testing.T) {
			var finalizers []int
			withOperator(t, func(r *kopf.Registry) {
				r.OnCreate(examples, func(_ context.Context, c *kopf.Change) error {
					finalizers = append(finalizers, len(c.Body().Finalizers()))
					return nil
				}, kopf.ID("create"))
				r.OnDelete(examples, ignore, kopf.ID("delete"))
			}, func(t *testing.T, h *kopftest.Harness) {
				if failure != nil {
					h.Fail(kopftest.Requests{Verb: "patch", Resource: "kopfexamples"}, 1, failure)
				}
				h.Create(newExample())
				h.Advance(time.Hour)
				if len(finalizers) != 1 || finalizers[0] != 1 {
					t.Errorf("the handler has seen %v finalizers", finalizers)
				}
			})
		})
	}
}

// A failed deletion handler holds the object if it says so, and people are told.
func TestOnlyFailuresOfSomeHandlersHoldADeletion(t *testing.T) {
	for name, options := range map[string][]kopf.ChangeOption{"it holds": {kopf.HoldOnFailure()}, "it does not": nil} {
		t.Run(name, func(t *testing.T) {
			withOperator(t, func(r *kopf.Registry) {
				r.OnDelete(examples, failForGood, append(options, kopf.ID("delete"))...)
				r.OnDelete(examples, failForGood, kopf.ID("other"))
			}, func(t *testing.T, h *kopftest.Harness) {
				one := newExample()
				h.Create(one)
				h.Advance(time.Minute)
				h.Delete(one)
				h.Advance(time.Hour)
				if told := len(messages(h, "DeletionHeld")); h.Exists(one) != (options != nil) || told != len(options) {
					t.Errorf("the object exists: %t; %d events", h.Exists(one), told)
				}
				if options != nil {
					h.Patch(one, `{"metadata": {"finalizers": null}}`)
				}
			})
		})
	}
}

var errConnection = errors.New("the connection is lost")
