package triggers_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/internal/handlertest"
	"github.com/kopf-go/kopf/internal/registry"
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
	handler *handler.Declaration
	trigger *several
	stored  map[string]*storage.Record
	failed  bool
}

func newFixture(t *testing.T) *fixture {
	d, err := handler.Child(selector.New("webs"), selector.New("pods"), handlertest.Function(func(context.Context, *handler.Call) error { return nil }), handler.ID("tell"))
	if err != nil {
		t.Fatal(err)
	}
	return &fixture{t: t, handler: d, stored: map[string]*storage.Record{}}
}

// sync tells the set which handlers match the object.
func (f *fixture) sync(uid types.UID, matching ...*handler.Declaration) {
	f.t.Helper()
	err := f.set.Sync(triggers.Object{
		Key: key, UID: uid, Handlers: matching, Declared: registry.Handlers{f.handler},
		Record: func(id string) (*storage.Record, error) { return f.stored[id], nil },
		New: func(d *handler.Declaration, failed bool) triggers.Trigger {
			f.trigger, f.failed = &several{handler: d}, failed
			return f.trigger
		},
	})
	if err != nil {
		f.t.Fatal(err)
	}
}

// make makes the pending calls, and stores the records. Those with an error fail.
func (f *fixture) make(errs map[string]error) {
	f.t.Helper()
	calls := f.set.Calls(key, func(string) bool { return false })
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

func TestASuccessLeavesNothing(t *testing.T) {
	f := newFixture(t)
	f.sync("u", f.handler)
	if calls := f.set.Calls(key, func(string) bool { return false }); calls != nil {
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
	f.trigger.pending = nil
	f.make(nil)
	f.expect(0, "")
}

func TestTheRecordOfAnEarlierProcessCounts(t *testing.T) {
	f := newFixture(t)
	f.stored["tell"] = &storage.Record{Started: time.Now(), Retries: 3, Message: "no"}
	f.sync("u", f.handler)
	if !f.failed {
		t.Error("the trigger is not pending")
	}
	f.trigger.handler, f.trigger.pending = f.handler, []string{""}
	f.set.Calls(key, func(string) bool { return false })
	if got := f.set.Calls(key, func(string) bool { return false }).Progress.Load("tell").Retries; got != 3 {
		t.Errorf("got %d attempts", got)
	}
}

func TestARecordOfAHandlerThatDoesNotMatchIsRemoved(t *testing.T) {
	f := newFixture(t)
	f.stored["tell"] = &storage.Record{Started: time.Now(), Retries: 3, Message: "no"}
	f.sync("u")
	f.trigger = &several{}
	f.make(nil)
	f.expect(0, "")
}

func TestTriggersStopWithTheirObject(t *testing.T) {
	f := newFixture(t)
	f.sync("u", f.handler)
	for name, end := range map[string]func(){
		"the handler does not match anymore": func() { f.sync("u") },
		"the object is gone":                 func() { f.set.Forget(key) },
		"the object was replaced":            func() { f.sync("another", f.handler) },
	} {
		f.sync("u", f.handler)
		before := f.trigger
		if end(); !before.stopped {
			t.Errorf("%s: the trigger was not stopped", name)
		}
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
