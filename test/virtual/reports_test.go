package virtual

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/kopftest"
)

func TestSupersededCauseIsLogged(t *testing.T) {
	withOperator(t, func(r *kopf.Registry) {
		r.OnCreate(examples, once, kopf.ID("a"))
		r.OnCreate(examples, once, kopf.ID("b"))
		r.OnDelete(examples, ignore, kopf.ID("c"))
	}, func(t *testing.T, h *kopftest.Harness) {
		one := newExample()
		h.Create(one)
		h.Advance(time.Minute)
		h.Delete(one)
		h.Advance(time.Minute)
		got := linesWith(h, "The creation is superseded by the deletion.")
		if len(got) != 1 || fmt.Sprint(got[0].Values["handlers"]) != "2" || len(linesWith(h, "The deletion is in progress.")) != 1 {
			t.Errorf("got %v", h.Logs())
		}
	})
}

// What no handler is for is only recorded, and a resumption is not even that.
func TestCauseWithoutHandlersIsRecorded(t *testing.T) {
	withOperator(t, func(r *kopf.Registry) {
		r.OnUpdate(examples, ignore, kopf.ID("update"))
		r.OnResume(examples, ignore, kopf.ID("resume"), labeled("other"))
	}, func(t *testing.T, h *kopftest.Harness) {
		h.Create(newExample())
		h.Advance(time.Minute)
		if got := linesWith(h, "No handler matches this creation; it is only recorded."); len(got) != 1 || writesOf(h, "one") != 1 {
			t.Errorf("got %v and the writes %v", got, h.Writes())
		}
		h.Restart()
		h.Advance(time.Minute)
		for _, line := range h.Logs() {
			if strings.Contains(line.Message, "resum") {
				t.Errorf("got %v", line)
			}
		}
		if got := writesOf(h, "one"); got != 1 {
			t.Errorf("%d writes after a restart", got)
		}
	})
}

// Each failure is logged, and people who look at the object see one event.
func TestOutageIsReportedAsAnEventOnce(t *testing.T) {
	withOperator(t, func(r *kopf.Registry) {
		r.OnCreate(examples, ignore, kopf.ID("create"))
	}, func(t *testing.T, h *kopftest.Harness) {
		failure := h.Fail(kopftest.Requests{Verb: "patch", Resource: "kopfexamples"}, 5, errConnection)
		h.Create(newExample())
		h.Advance(time.Hour)
		var logged int
		for _, line := range h.Logs() {
			if line.Err != nil && strings.Contains(line.Err.Error(), errConnection.Error()) {
				logged++
			}
		}
		if got := messages(h, "ReconcileError"); len(got) != 1 || !strings.Contains(got[0], "The object cannot be handled now; it will be retried: ") || logged != failure.Count() {
			t.Errorf("got the events %q, and %d lines about %d failures", got, logged, failure.Count())
		}
		expectHandled(t, h, "one")
	})
}

// A success is reported when the edit of the handler is written, and not if the API server rejects it.
func TestSuccessIsReportedWhenItsEditIsWritten(t *testing.T) {
	withOperator(t, func(r *kopf.Registry) {
		r.OnCreate(examples, func(_ context.Context, c *kopf.Change) error {
			c.Patch().Set("x", "spec", "written")
			return nil
		}, kopf.ID("written"))
		r.OnCreate(examples, func(_ context.Context, c *kopf.Change) error {
			c.Patch().Set("not a label!", "metadata", "labels", "rejected")
			return nil
		}, kopf.ID("rejected"))
	}, func(t *testing.T, h *kopftest.Harness) {
		h.Create(newExample())
		h.Advance(time.Hour)
		if got := messages(h, "HandlerSucceeded"); len(got) != 1 || got[0] != "Handler written succeeded." {
			t.Errorf("got the events %q", got)
		}
		if got := linesWith(h, "The handler succeeded."); len(got) != 1 || got[0].Values["handler"] != "written" {
			t.Errorf("got the lines %v", got)
		}
	})
}

// An upgrade has renamed a handler: its progress stays on the objects, and nothing reads it.
func TestProgressOfUndeclaredHandlersIsReported(t *testing.T) {
	withOperator(t, func(r *kopf.Registry) {
		r.OnCreate(examples, ignore, kopf.ID("create"))
	}, func(t *testing.T, h *kopftest.Harness) {
		h.Stop()
		createAll(h, "", "a", "b", "c")
		for _, name := range []string{"a", "b"} {
			h.Patch(exampleNamed(name), `{"metadata": {"annotations": {"kopf.zalando.org/renamed": "{\"started\":\"2024-02-14T16:58:25.396364+00:00\",\"purpose\":\"update\"}"}}}`)
		}
		h.Start()
		h.Advance(time.Minute)
		h.Patch(exampleNamed("a"), `{"spec": {"size": 4}}`)
		h.Advance(time.Hour)
		var got []kopftest.Log
		for _, line := range h.Logs() {
			if line.Values["record"] == "renamed" {
				got = append(got, line)
			}
		}
		if len(got) != 1 || fmt.Sprint(got[0].Values["objects"]) != "2" {
			t.Errorf("got %v", got)
		}
	})
}

// A handler whose field changes while others are retried does not wait for them.
func TestHandlersOfALaterChangeJoinAnOpenCycle(t *testing.T) {
	withOperator(t, func(r *kopf.Registry) {
		r.OnUpdate(examples, failForGood, kopf.ID("size"), kopf.Field("spec.size"))
		r.OnUpdate(examples, ignore, kopf.ID("color"), kopf.Field("spec.color"))
		r.OnUpdate(examples, once, kopf.ID("all"))
	}, func(t *testing.T, h *kopftest.Harness) {
		one := newExample()
		h.Create(one)
		h.Advance(time.Minute)
		h.Patch(one, `{"spec": {"size": 4}}`)
		h.Advance(time.Minute)
		h.Patch(one, `{"spec": {"color": "red"}}`)
		h.Advance(time.Minute)
		if size, color, all := h.Calls("size/spec.size"), h.Calls("color/spec.color"), h.Calls("all"); len(size) != 1 || len(color) != 1 || len(all) != 1 {
			t.Errorf("got %v, %v, and %v", size, color, all)
		}
	})
}

// An interrupted cycle whose change was reverted leaves records that no cycle will remove.
func TestStaleRecordsAreRemoved(t *testing.T) {
	for purpose, removed := range map[kopf.Reason]bool{kopf.ReasonCreate: true, kopf.ReasonDelete: true, kopf.ReasonResume: false} {
		t.Run(string(purpose), func(t *testing.T) {
			withOperator(t, func(r *kopf.Registry) {
				r.OnCreate(examples, ignore, kopf.ID("apply"))
				r.OnDelete(examples, ignore, kopf.ID("remove"))
			}, func(t *testing.T, h *kopftest.Harness) {
				one := newExample()
				h.Create(one)
				h.Advance(time.Minute)
				h.Patch(one, fmt.Sprintf(`{"metadata": {"annotations": {"kopf.zalando.org/remove": "{\"started\":\"2024-02-14T16:58:25.396364+00:00\",\"purpose\":\"%s\"}"}}}`, purpose))
				h.Advance(time.Hour)
				h.Get(one)
				if _, exists := one.GetAnnotations()["kopf.zalando.org/remove"]; exists == removed {
					t.Errorf("the record exists: %t", exists)
				}
			})
		})
	}
}

// A resume handler leaves no record, so its edit may be all there is to write.
func TestAnEditThatChangesNothingIsNoWrite(t *testing.T) {
	withOperator(t, func(r *kopf.Registry) {
		r.OnCreate(examples, ignore, kopf.ID("create"))
		r.OnResume(examples, func(_ context.Context, c *kopf.Change) error {
			c.Patch().Set(int64(3), "spec", "size")
			return nil
		}, kopf.ID("resume"))
	}, func(t *testing.T, h *kopftest.Harness) {
		h.Create(newExample())
		h.Advance(time.Minute)
		writes := len(h.Writes())
		h.Restart()
		h.Advance(time.Hour)
		if more := h.Writes()[writes:]; len(h.Calls("resume")) != 1 || len(more) > 0 {
			t.Errorf("got %v and the writes %v", h.Calls("resume"), more)
		}
	})
}

// Whether an earlier process has failed to call a handler of children is in its record.
func TestRecordsOfChildHandlersThatCannotBeReadAreAnError(t *testing.T) {
	s := &unreliable{broken: "the records"}
	withOperator(t, func(r *kopf.Registry) {
		r.OnChild(examples, kopf.Resource("v1", "configmaps"), func(context.Context, *kopf.ChildChange) error { return errors.New("called") }, kopf.ID("tell"))
	}, func(t *testing.T, h *kopftest.Harness) {
		h.Create(newExample())
		h.Advance(time.Hour)
		if got := messages(h, "ReconcileError"); len(got) != 1 || !strings.Contains(got[0], errStorage.Error()) {
			t.Errorf("got the events %q", got)
		}
	}, s.option())
}

// An event handler waits for a slot, and its object is looked at afterwards.
func TestEventHandlersWaitForASlot(t *testing.T) {
	withOperator(t, func(r *kopf.Registry) {
		r.OnCreate(examples, waits(time.Minute), kopf.ID("slow"), labeled("slow"))
		r.OnCreate(examples, ignore, kopf.ID("create"), labeled("other"))
		r.OnEvent(examples, func(context.Context, *kopf.WatchEvent) error { return nil }, kopf.ID("event"), labeled("other"))
	}, func(t *testing.T, h *kopftest.Harness) {
		createAll(h, "slow", "first")
		h.Advance(time.Second)
		createAll(h, "other", "second")
		h.Advance(30 * time.Second)
		if events, created := h.Calls("event"), h.Calls("create"); len(events)+len(created) > 0 {
			t.Errorf("without a slot, %v and %v are called", events, created)
		}
		h.Advance(time.Minute)
		events, created := h.Calls("event"), h.Calls("create")
		if len(events) == 0 || len(created) != 1 || created[0].At.Before(events[0].At) {
			t.Errorf("got %v and %v", events, created)
		}
	}, kopftest.Settings(func(s *kopf.Settings) { s.Execution.MaxCalls = 1 }))
}
