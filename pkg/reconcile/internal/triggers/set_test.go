package triggers_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/internal/handlertest"
	"github.com/kopf-go/kopf/internal/registry"
	"github.com/kopf-go/kopf/pkg/model/cause"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/selector"
	"github.com/kopf-go/kopf/pkg/reconcile/call"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/triggers"
	"github.com/kopf-go/kopf/pkg/storage"
)

var key = object.Key{Resource: "webs", NamespacedName: types.NamespacedName{Namespace: "ns", Name: "web"}}

// several is a trigger with a call for each name.
type several struct {
	handler *handler.Declaration
	pending []string
	begun   []string
	ended   []string
	stopped bool
}

func (s *several) IsPending() bool { return len(s.pending) > 0 }

func (s *several) Calls() (calls []*handler.Declaration) {
	for _, name := range s.pending {
		calls = append(calls, handler.ForCall(s.handler, name, nil))
	}
	return calls
}

func (s *several) Begin(id string) { s.begun = append(s.begun, id) }

func (s *several) End(id string, again bool) {
	if again {
		id += " again"
	}
	s.ended = append(s.ended, id)
	var kept []string
	for _, name := range s.pending {
		if again || s.handler.ID+"/"+name != id {
			kept = append(kept, name)
		}
	}
	s.pending = kept
}

func (s *several) Stop() { s.stopped = true }

// fixture is an object with one handler.
type fixture struct {
	t       *testing.T
	set     triggers.Set
	handler *handler.Declaration // "tell"
	other   *handler.Declaration // "log"
	trigger *several             // the latest of the former
	logged  *several             // the latest of the latter
	stored  map[string]*storage.Record
	failed  bool
	ahead   bool // of the handlers of changes
	broken  error
}

func newFixture(t *testing.T) *fixture {
	f := &fixture{t: t, stored: map[string]*storage.Record{}}
	for id, d := range map[string]**handler.Declaration{"tell": &f.handler, "log": &f.other} {
		var err error
		*d, err = handler.Child(selector.New("webs"), selector.New("pods"), handlertest.Function(func(context.Context, *handler.Call) error { return nil }), handler.ID(id))
		if err != nil {
			t.Fatal(err)
		}
	}
	return f
}

// object returns the object as a pass sees it.
func (f *fixture) object(uid types.UID, matching ...*handler.Declaration) triggers.Object {
	return triggers.Object{
		Key: key, UID: uid, Handlers: matching, Declared: registry.Handlers{f.handler, f.other},
		Record:  func(id string) (*storage.Record, error) { return f.stored[id], f.broken },
		IsAhead: func(string) bool { return f.ahead },
		New: func(d *handler.Declaration, failed bool) triggers.Trigger {
			made := &several{handler: d}
			if d == f.other {
				f.logged = made
				return made
			}
			f.trigger, f.failed = made, failed
			return made
		},
	}
}

// sync tells the set which handlers match the object.
func (f *fixture) sync(uid types.UID, matching ...*handler.Declaration) {
	f.t.Helper()
	if err := f.set.Sync(f.object(uid, matching...)); err != nil {
		f.t.Fatal(err)
	}
}

// calls returns the pending calls.
func (f *fixture) calls() *triggers.Calls {
	return f.set.Calls(key, func(string) bool { return false })
}

// make makes the pending calls, and stores the records. Those with an error fail.
func (f *fixture) make(errs map[string]error) {
	f.t.Helper()
	calls := f.calls()
	for _, d := range calls.Handlers {
		calls.Begin(d.ID)
		o := call.Outcome{Called: true, Final: errs[d.ID] == nil || handler.IsPermanent(errs[d.ID]), Err: errs[d.ID]}
		calls.Progress.Fail(d.ID, errors.New("to be revised"))
		calls.Progress.Load(d.ID).Retries++
		calls.Progress.Revise(d.ID, o)
	}
	for id, record := range calls.Records() {
		if f.stored[id] = record; record != nil {
			record := *record
			f.stored[id] = &record
		}
	}
	calls.End()
	if record := f.stored["tell"]; record != nil && (record.Started.IsZero() || record.Purpose != cause.Reason(handler.OnChild)) {
		f.t.Errorf("got %+v", record)
	}
}

// expect compares the number of attempts in the stored record, and what is pending.
func (f *fixture) expect(retries int, pending string) {
	f.t.Helper()
	got := 0
	if record := f.stored["tell"]; record != nil {
		got = record.Retries
	}
	if got != retries || strings.Join(f.trigger.pending, " ") != pending {
		f.t.Errorf("got %d attempts in the record, and %v pending", got, f.trigger.pending)
	}
}

func TestTheRecordIsThatOfTheWorstCall(t *testing.T) {
	f := newFixture(t)
	f.sync("u", f.handler)
	f.trigger.pending = []string{"a"}
	no := errors.New("no")
	f.make(map[string]error{"tell/a": no})
	f.expect(1, "a")
	f.trigger.pending = []string{"a", "b"}
	f.make(map[string]error{"tell/a": no, "tell/b": no})
	f.expect(2, "a b")
	f.make(map[string]error{"tell/b": no})
	f.expect(2, "b")
	f.make(map[string]error{"tell/b": handler.Permanent(no)})
	f.expect(0, "")
}

func TestEachHandlerHasItsRecord(t *testing.T) {
	f := newFixture(t)
	f.sync("u", f.handler, f.other)
	f.trigger.pending, f.logged.pending = []string{"a"}, []string{"a"}
	no := errors.New("no")
	f.make(map[string]error{"tell/a": no})
	f.expect(1, "a")
	if f.stored["log"] != nil {
		t.Errorf("got %+v", f.stored["log"])
	}
}

// Of several calls with as many attempts, the one that began first has the record.
func TestTheRecordIsThatOfTheEarliestCall(t *testing.T) {
	f := newFixture(t)
	f.sync("u", f.handler)
	no := errors.New("no")
	f.trigger.pending = []string{"a"}
	f.make(map[string]error{"tell/a": no})
	first := f.stored["tell"].Started
	f.trigger.pending = []string{"a", "b"}
	calls := f.calls()
	for id, retries := range map[string]int{"tell/a": 2, "tell/b": 2} {
		calls.Progress.Load(id).Retries = retries
	}
	calls.Progress.Load("tell/b").Started = first.Add(-time.Second)
	if got := calls.Records()["tell"].Started; !got.Equal(first.Add(-time.Second)) {
		t.Errorf("got %v", got)
	}
	calls.Progress.Load("tell/a").Retries = 3
	if got := calls.Records()["tell"].Started; !got.Equal(first) {
		t.Errorf("got %v", got)
	}
}

func TestEachCallCountsItsAttempts(t *testing.T) {
	f := newFixture(t)
	f.sync("u", f.handler)
	pending := []string{"a", "b", "c"}
	f.trigger.pending = pending
	no := errors.New("no")
	f.make(map[string]error{"tell/a": no, "tell/b": no, "tell/c": no})
	if !slices.Equal(f.trigger.begun, []string{"tell/a", "tell/b", "tell/c"}) {
		t.Errorf("got %q", f.trigger.begun)
	}
	calls := f.calls()
	for _, name := range pending {
		if got := calls.Progress.Load("tell/" + name).Retries; got != 1 {
			t.Errorf("%s: got %d", name, got)
		}
	}
	if got := calls.Progress.Load("tell").Retries; got != 0 {
		t.Errorf("got %d attempts of no call", got)
	}
	f.make(nil)
	f.trigger.pending = []string{"a"}
	f.make(map[string]error{"tell/a": no})
	f.expect(1, "a") // it has succeeded before
}

// A pass may end before it makes a call, or in the middle of it.
func TestACallWithoutAnAttemptHasNoRecord(t *testing.T) {
	f := newFixture(t)
	f.sync("u", f.handler)
	f.trigger.pending = []string{"a", "b"}
	for range 2 {
		calls := f.calls()
		calls.Begin("tell/a")
		if got := calls.Records(); len(got) > 0 {
			t.Errorf("got %v", got)
		}
		calls.End()
	}
	f.expect(0, "a b")
}

func TestASuccessLeavesNothing(t *testing.T) {
	f := newFixture(t)
	if calls := f.calls(); calls != nil || f.set.IsPending(key) {
		t.Errorf("got %+v of an unknown object", calls)
	}
	f.sync("u", f.handler)
	if calls := f.calls(); calls != nil || f.failed {
		t.Errorf("got %+v", calls)
	}
	f.trigger.pending = []string{"a"}
	if calls := f.set.Calls(key, func(string) bool { return true }); calls != nil || !f.set.IsPending(key) {
		t.Errorf("got %+v of an excluded handler", calls)
	}
	f.make(nil)
	f.expect(0, "")
	if len(f.stored) > 0 || f.set.IsPending(key) {
		t.Errorf("got %v", f.stored)
	}
}

// A call can turn out to be unnecessary: its record must not stay.
func TestTheRecordOfACallThatIsNotNeededAnymoreIsRemoved(t *testing.T) {
	f := newFixture(t)
	f.sync("u", f.handler)
	f.trigger.pending = []string{"a"}
	f.make(map[string]error{"tell/a": errors.New("no")})
	calls := f.set.Calls(key, func(string) bool { return true })
	if got := calls.Records()["tell"]; got == nil || got.Retries != 1 {
		t.Errorf("got %+v of a handler that cannot be called", got)
	}
	f.trigger.pending = nil
	calls = f.set.Calls(key, func(string) bool { return true })
	if got, has := calls.Records()["tell"]; got != nil || !has {
		t.Errorf("got %+v", got)
	}
	calls.End()
	if f.calls() != nil {
		t.Error("there is another record to remove")
	}
}

func TestTheRecordOfAnEarlierProcessCounts(t *testing.T) {
	f := newFixture(t)
	f.stored["tell"] = &storage.Record{Started: time.Now(), Retries: 3, Message: "no"}
	f.sync("u", f.handler)
	if !f.failed {
		t.Error("the trigger is not pending")
	}
	f.trigger.handler, f.trigger.pending = f.handler, []string{""}
	f.calls()
	if got := f.calls().Progress.Load("tell").Retries; got != 3 {
		t.Errorf("got %d attempts", got)
	}
}

func TestTheRecordOfACallThatHasEndedDoesNotCount(t *testing.T) {
	f := newFixture(t)
	f.stored["tell"] = &storage.Record{Started: time.Now(), Retries: 3, Success: true}
	f.sync("u", f.handler)
	f.trigger.pending = []string{""}
	f.trigger.handler = f.handler
	if calls := f.calls(); f.failed || !calls.Progress.IsOpen("tell") || calls.Progress.Load("tell").Retries != 0 {
		t.Errorf("got %+v", calls.Progress.Load("tell"))
	}
}

// The operator does not watch the object for a while, and may have been replaced meanwhile.
func TestTheRecordOfAForgottenObjectIsReadAgain(t *testing.T) {
	f := newFixture(t)
	f.sync("u", f.handler)
	f.set.Forget(key)
	f.stored["tell"] = &storage.Record{Started: time.Now(), Retries: 3, Message: "no"}
	if f.sync("u", f.handler); !f.failed {
		t.Error("the trigger is not pending")
	}
}

func TestARecordThatIsNotNeededIsRemoved(t *testing.T) {
	failed, ended := storage.Record{Started: time.Now(), Retries: 3, Message: "no"}, storage.Record{Started: time.Now(), Retries: 1, Success: true}
	for name, test := range map[string]struct {
		record   storage.Record
		handlers []string
	}{"the handlers do not match": {failed, nil}, "the handlers have ended": {ended, []string{"tell", "log"}}} {
		f := newFixture(t)
		f.stored["tell"], f.stored["log"] = &test.record, &test.record
		f.sync("u", registry.Handlers{f.handler, f.other}.Where(func(d *handler.Declaration) bool { return slices.Contains(test.handlers, d.ID) })...)
		f.make(nil)
		if f.stored["tell"] != nil || f.stored["log"] != nil || f.failed {
			t.Errorf("%s: got %v", name, f.stored)
		}
		if f.calls() != nil {
			t.Errorf("%s: there are other records to remove", name)
		}
	}
}

func TestTriggersStopWithTheirObject(t *testing.T) {
	f := newFixture(t)
	f.sync("u", f.handler)
	for name, end := range map[string]func(){
		"the handler does not match anymore": func() { f.sync("u", f.other) },
		"the object is gone":                 func() { f.set.Forget(key) },
		"the object was replaced":            func() { f.sync("another", f.handler) },
	} {
		f.sync("u", f.handler, f.other)
		before, other := f.trigger, f.logged
		before.pending = []string{"a"}
		if f.sync("u", f.handler, f.other); f.trigger != before || f.logged != other || before.stopped {
			t.Errorf("%s: the trigger has begun anew before", name)
		}
		if end(); !before.stopped || f.set.IsPending(key) {
			t.Errorf("%s: the trigger was not stopped", name)
		}
		if (other.stopped || f.logged != other) == (name == "the handler does not match anymore") {
			t.Errorf("%s: got another trigger", name)
		}
		f.trigger.pending = []string{"b"}
		if got := f.set.IsPending(key); got != (name == "the object was replaced") {
			t.Errorf("%s: pending: %t", name, got)
		}
		f.set.Forget(key)
		f.set.Forget(key)
	}
	if f.set.IsPending(key) || f.calls() != nil {
		t.Error("the object is not forgotten")
	}
}

func TestObjectsHaveTheirOwnTriggers(t *testing.T) {
	f := newFixture(t)
	f.sync("u", f.handler)
	f.trigger.pending = []string{"a"}
	other := f.object("other", f.other)
	other.Key.Name = "other"
	if err := f.set.Sync(other); err != nil {
		t.Fatal(err)
	}
	if f.set.IsPending(other.Key) || !f.set.IsPending(key) {
		t.Error("the wrong object is pending")
	}
}

func TestTriggersWaitForTheRecords(t *testing.T) {
	f := newFixture(t)
	f.broken = errors.New("the storage does not work")
	if err := f.set.Sync(f.object("u", f.handler)); !errors.Is(err, f.broken) || f.trigger != nil {
		t.Errorf("got %v", err)
	}
}

// A handler was called for a state that the handlers of changes have not seen.
func TestAHandlerIsCalledAgainWhenItIsNotAheadAnymore(t *testing.T) {
	f := newFixture(t)
	elsewhere := key
	elsewhere.Name = "elsewhere"
	f.ahead = true
	f.sync("u", f.handler, f.other)
	f.set.Repeat(key, "tell")
	f.set.Repeat(key, "log")
	f.set.Repeat(elsewhere, "tell")
	f.sync("u", f.handler, f.other)
	if f.trigger.ended != nil || f.logged.ended != nil || !f.set.IsPending(key) {
		t.Error("it is called while it is ahead")
	}
	f.ahead = false
	f.sync("u", f.handler)
	if !slices.Equal(f.trigger.ended, []string{"tell again"}) || !f.set.IsPending(key) {
		t.Errorf("got %q", f.trigger.ended)
	}
	f.sync("u", f.handler, f.other)
	f.sync("u", f.handler, f.other)
	if !slices.Equal(f.trigger.ended, []string{"tell again"}) || !slices.Equal(f.logged.ended, []string{"log again"}) || f.set.IsPending(key) {
		t.Errorf("got %q, %q", f.trigger.ended, f.logged.ended)
	}

	f.set.Repeat(key, "tell")
	f.set.Forget(key)
	f.sync("u", f.handler)
	if f.trigger.ended != nil {
		t.Error("what was known of the former object is not forgotten")
	}
}

func TestAFlagIsSetOnce(t *testing.T) {
	d, passes := newFixture(t).handler, 0
	f := triggers.NewFlag(d, func() { passes++ })
	if f.IsPending() || f.Calls() != nil {
		t.Error("it is pending")
	}
	f.Set()
	f.Set()
	if got := f.Calls(); passes != 1 || len(got) != 1 || got[0] != d {
		t.Errorf("got %v after %d requests", got, passes)
	}
	f.Begin(d.ID)
	f.Set()
	f.End(d.ID, false)
	if !f.IsPending() || passes != 2 {
		t.Error("what has happened during the call is lost")
	}
	f.Begin(d.ID)
	f.End(d.ID, true)
	if !f.IsPending() {
		t.Error("a failed call is not pending")
	}
	f.Begin(d.ID)
	if !f.IsPending() {
		t.Error("an interrupted call is not pending")
	}
	f.End(d.ID, false)
	if f.Stop(); f.IsPending() {
		t.Error("it is pending")
	}
}
