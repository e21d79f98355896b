package plan

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/internal/handlertest"
	"github.com/kopf-go/kopf/internal/registry"
	"github.com/kopf-go/kopf/pkg/model/cause"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/selector"
	"github.com/kopf-go/kopf/pkg/reconcile/call"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/record"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/requests"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/revision"
	"github.com/kopf-go/kopf/pkg/storage"
)

var kexes = selector.New("kopfexamples")

// everything has a handler of each kind that plans are about. Objects with the label "off" have none.
func everything(r *registry.Registry) {
	fn := handlertest.Function(func(context.Context, *handler.Call) error { return nil })
	on := handler.Labels(map[string]handler.Matcher{"off": handler.Absent()})
	r.Add(handler.Create(kexes, fn, handler.ID("create"), on))
	r.Add(handler.Update(kexes, fn, handler.ID("update"), on))
	r.Add(handler.Update(kexes, fn, handler.ID("resize"), handler.Field("spec", "size"), on))
	r.Add(handler.Delete(kexes, fn, handler.ID("delete"), on))
	r.Add(handler.Resume(kexes, fn, handler.ID("resume"), on))
}

// daemons has a daemon and a timer, which stop at the label "off".
func daemons(r *registry.Registry) {
	on := handler.Labels(map[string]handler.Matcher{"off": handler.Absent()})
	r.Add(handler.Daemon(kexes, handlertest.Function(func(context.Context, *handler.Call) error { return nil }), handler.ID("daemon"), on))
	r.Add(handler.Timer(kexes, handlertest.Function(func(context.Context, *handler.Call) error { return nil }), handler.ID("timer"), handler.Interval(time.Hour), on))
}

// revised has a handler with a revision.
func revised(r *registry.Registry) {
	fn := handlertest.Function(func(context.Context, *handler.Call) error { return nil })
	r.Add(handler.Update(kexes, fn, handler.ID("update"), handler.Revision("2")))
}

// timers has a timer.
func timers(r *registry.Registry) {
	r.Add(handler.Timer(kexes, handlertest.Function(func(context.Context, *handler.Call) error { return nil }), handler.ID("timer"), handler.Interval(time.Hour)))
}

// special has a handler for objects with the label "special", and one for the creation of all.
func special(r *registry.Registry) {
	fn := handlertest.Function(func(context.Context, *handler.Call) error { return nil })
	r.Add(handler.Create(kexes, fn, handler.ID("create")))
	r.Add(handler.Update(kexes, fn, handler.ID("special"), handler.Labels(map[string]handler.Matcher{"special": handler.Present()})))
}

type look struct {
	handlers func(r *registry.Registry)
	object   m // changes to the object, whose spec has the size 1
	base     m // nil: never handled
	records  map[string]storage.Record
	memory   Memory
	held     bool // by the finalizer
	open     *storage.Cycle
	unserved bool // there are deletion handlers of another version of the resource
	replayed bool // without requests and rollouts
}

// plan makes the plan, and returns what a decision about it depends on.
func (l look) plan(t *testing.T) (*Plan, Circumstances) {
	t.Helper()
	declared := registry.Registry{}
	l.handlers(&declared)
	all, err := declared.Handlers(scheme.Scheme)
	if err != nil {
		t.Fatal(err)
	}
	metadata := m{"name": "a", "uid": "u-1"}
	for key, value := range l.object {
		metadata[key] = value
	}
	spec, ok := metadata["spec"].(m)
	if delete(metadata, "spec"); !ok {
		spec = m{"size": int64(1)}
	}
	body := object.NewBody(m{"apiVersion": "kopf.dev/v1", "kind": "KopfExample", "metadata": metadata, "spec": spec})
	f := Facts{
		Arguments: handler.CallContext{Body: body, Logger: logr.Discard()}, Handlers: Sort(all), Memory: l.memory, HasFinalizer: l.held,
		Requests: requests.NewReader("kopf.dev"), Revisions: &revision.Reviser{Annotation: "kopf.dev/" + revision.Name},
		Stored: record.Stored{New: object.Essence{"spec": spec}, Progress: call.NewProgress(func(id string) *storage.Record {
			stored, known := l.records[id]
			if !known {
				return nil
			}
			return &stored
		})},
	}
	if l.base != nil {
		f.Stored.Base = l.base
		f.Stored.Old = f.Stored.Base
	}
	for _, id := range f.Handlers.IDs {
		f.Stored.Progress.Load(id)
	}
	f.Stored.Open = l.open
	if l.unserved {
		f.Handlers.Unserved = registry.Handlers{{ID: "delete", Kind: handler.OnDelete}}
	}
	if l.replayed {
		f.Requests = nil
		f.Revisions = nil
	}
	return Make(f), Circumstances{Handlers: f.Handlers, Revisions: f.Revisions}
}

// make makes the plan, and describes it in one line.
func (l look) make(t *testing.T) string {
	t.Helper()
	p, _ := l.plan(t)
	words := []string{string(p.Reason)}
	if ids := IDsOf(p.Handlers); len(ids) > 0 {
		words = append(words, "calls "+strings.Join(ids, " "))
	}
	if ids := IDsOf(p.Background); len(ids) > 0 {
		words = append(words, "runs "+strings.Join(ids, " "))
	}
	for _, misfit := range p.Misfits {
		outcome := " is skipped"
		if misfit.Waits {
			outcome = " waits"
		}
		words = append(words, misfit.Handler.ID+outcome)
	}
	if p.Cycle != nil && p.Cycle.Reason != p.Reason {
		t.Errorf("the reason of the cycle is %s", p.Cycle.Reason)
	}
	if p.MustAddFinalizer() {
		words = append(words, "adds the finalizer")
	}
	if p.HasFinalizer && !p.NeedsFinalizer {
		words = append(words, "does not need the finalizer")
	}
	if p.Cycle != nil && p.NothingToDo() {
		words = append(words, "nothing to do")
	}
	return strings.TrimPrefix(strings.Join(words, "; "), "; ")
}

// lasting has a daemon that does not hold its objects, and another one.
func lasting(r *registry.Registry) {
	fn := handlertest.Function(func(context.Context, *handler.Call) error { return nil })
	r.Add(handler.Daemon(kexes, fn, handler.ID("lasting"), handler.Deleted()))
	r.Add(handler.Daemon(kexes, fn, handler.ID("daemon"), handler.Labels(map[string]handler.Matcher{"off": handler.Absent()})))
}

// A plan depends on its facts only, so these are all that there is to see.
func TestPlans(t *testing.T) {
	same, smaller := m{"spec": m{"size": int64(1)}}, m{"spec": m{"size": int64(0)}}
	off := m{"labels": m{"off": "yes"}}
	deleted := m{"deletionTimestamp": "2026-01-01T00:00:00Z"}
	retried := func(reason cause.Reason) map[string]storage.Record {
		return map[string]storage.Record{"update": {Purpose: reason, Retries: 1, Started: time.Now()}}
	}
	tests := map[string]struct {
		look look
		want string
	}{
		"a new object":                             {look{handlers: everything}, "create; calls create; adds the finalizer"},
		"a new object with the finalizer":          {look{handlers: everything, held: true}, "create; calls create"},
		"a new object that no handler is for":      {look{handlers: everything, object: off}, "create; nothing to do"},
		"an object at rest":                        {look{handlers: everything, base: same, held: true}, "noop; nothing to do"},
		"a change":                                 {look{handlers: everything, base: smaller, held: true}, "update; calls update resize/spec.size"},
		"a change of an object out of scope":       {look{handlers: everything, object: off, base: smaller, held: true}, "update; does not need the finalizer; nothing to do"},
		"a start":                                  {look{handlers: everything, base: same, held: true, memory: Memory{Initial: true}}, "resume; calls resume"},
		"a change while no operator ran":           {look{handlers: everything, base: smaller, held: true, memory: Memory{Initial: true}}, "update; calls update resize/spec.size resume"},
		"the same, and resume handlers have ended": {look{handlers: everything, base: smaller, held: true, memory: Memory{Initial: true, HasResumed: func(string) bool { return true }}}, "update; calls update resize/spec.size"},
		"the same, in the cycle of a predecessor": {look{handlers: everything, base: smaller, held: true, memory: Memory{Initial: true, HasResumed: func(string) bool { return true }}, records: map[string]storage.Record{
			"resume": {Purpose: cause.Update, Retries: 1, Success: true, Started: time.Now(), Stopped: time.Now()},
		}}, "update; calls update resize/spec.size resume"},
		"a deletion":                                 {look{handlers: everything, object: deleted, base: same, held: true}, "delete; calls delete"},
		"a deletion without the finalizer":           {look{handlers: everything, object: deleted, base: same}, "free; nothing to do"},
		"the same, after a start":                    {look{handlers: everything, object: deleted, base: same, memory: Memory{Initial: true}}, "free; nothing to do"},
		"a change that is taken back":                {look{handlers: everything, base: same, held: true, records: retried(cause.Update)}, "update; calls update"},
		"the same, which one of two has seen":        {look{handlers: ordered, base: same, records: retried(cause.Update)}, "update; calls update"},
		"a field that is taken back":                 {look{handlers: colored, base: same, records: map[string]storage.Record{"update/spec.color": {Purpose: cause.Update, Retries: 1, Started: time.Now()}}}, "update; calls update/spec.color"},
		"a new object with handlers for later":       {look{handlers: revised}, "create"},
		"a retry of another reason":                  {look{handlers: everything, base: same, held: true, records: retried(cause.Create)}, "noop; nothing to do"},
		"a request to rerun":                         {look{handlers: everything, object: m{"annotations": m{"kopf.dev/request-rerun": "1 update"}}, base: same, held: true}, "resume; calls update"},
		"a request to rerun what does not exist":     {look{handlers: everything, object: m{"annotations": m{"kopf.dev/request-rerun": "1 other"}}, base: same, held: true}, "noop; nothing to do"},
		"a request to rerun a deletion handler":      {look{handlers: everything, object: m{"annotations": m{"kopf.dev/request-rerun": "1 delete"}}, base: same, held: true}, "noop; nothing to do"},
		"a request to rerun during a change":         {look{handlers: everything, object: m{"annotations": m{"kopf.dev/request-rerun": "1 update create other"}}, base: smaller, held: true}, "update; calls update resize/spec.size create"},
		"a request to rerun during a deletion":       {look{handlers: everything, object: m{"annotations": m{"kopf.dev/request-rerun": "1 update"}, "deletionTimestamp": deleted["deletionTimestamp"]}, base: same, held: true}, "delete; calls delete"},
		"a request to rerun what does not match":     {look{handlers: special, object: m{"annotations": m{"kopf.dev/request-rerun": "1 special"}}, base: same}, "noop; nothing to do"},
		"a start, and resume handlers have not run":  {look{handlers: everything, base: same, held: true, memory: Memory{Initial: true, HasResumed: func(string) bool { return false }}}, "resume; calls resume"},
		"a timer alone":                              {look{handlers: timers}, "runs timer"},
		"a timer beside deletion handlers":           {look{handlers: func(r *registry.Registry) { everything(r); timers(r) }}, "create; calls create; runs timer; adds the finalizer"},
		"deletion handlers of another version":       {look{handlers: special, held: true, unserved: true}, "create; calls create"},
		"another revision":                           {look{handlers: revised, object: m{"annotations": m{"kopf.dev/handled-revisions": `{"done":{"update":"1"}}`}}, base: same}, "update; calls update"},
		"another revision, in a replay":              {look{handlers: revised, object: m{"annotations": m{"kopf.dev/handled-revisions": `{"done":{"update":"1"}}`}}, base: same, replayed: true}, "noop; nothing to do"},
		"the same revision":                          {look{handlers: revised, object: m{"annotations": m{"kopf.dev/handled-revisions": `{"done":{"update":"2"}}`}}, base: same}, "noop; nothing to do"},
		"daemons and timers":                         {look{handlers: daemons}, "runs daemon timer; adds the finalizer"},
		"daemons that do not match":                  {look{handlers: daemons, object: off, held: true}, "does not need the finalizer"},
		"a daemon that still runs":                   {look{handlers: daemons, object: off, held: true, memory: Memory{DaemonsRunning: true}}, ""},
		"a daemon that has ended":                    {look{handlers: daemons, held: true, memory: Memory{NeedsFinalizer: func(*handler.Declaration) bool { return false }}}, "runs daemon timer; does not need the finalizer"},
		"daemons of an object that is being deleted": {look{handlers: daemons, object: deleted, held: true}, "does not need the finalizer"},
		"daemons that last":                          {look{handlers: lasting}, "runs lasting daemon; adds the finalizer"},
		"daemons that last, and no others":           {look{handlers: lasting, object: off, held: true}, "runs lasting; does not need the finalizer"},
		"daemons that last during a deletion":        {look{handlers: lasting, object: deleted}, "runs lasting"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := test.look.make(t); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

// The writer makes the plan again for each version, and a replay after years.
func TestPlansOfEqualFactsAreEqual(t *testing.T) {
	l := look{handlers: everything, base: m{"spec": m{"size": int64(0)}}, held: true}
	if a, b := l.make(t), l.make(t); a != b {
		t.Errorf("got %s and %s", a, b)
	}
}

// Comparing one value with itself costs nothing, and the base can be freed.
func TestEqualStatesAreOneValue(t *testing.T) {
	isOne := func(a, b object.Essence) bool {
		return reflect.ValueOf(a).UnsafePointer() == reflect.ValueOf(b).UnsafePointer()
	}
	for size, want := range map[int64]bool{1: true, 2: false} {
		p, _ := look{handlers: everything, base: object.Essence{"spec": m{"size": size}}}.plan(t)
		if isOne(p.Cycle.Old, p.Cycle.New) != want || !isOne(p.Cycle.Old, p.Old) || (len(p.Diff) == 0) != want {
			t.Errorf("size %d: old %v, new %v", size, p.Cycle.Old, p.Cycle.New)
		}
	}
}

// A handler that is due for the difference between two states of the object is for the fields of the later one.
func TestHandlersAreDueBetweenStates(t *testing.T) {
	var r registry.Registry
	everything(&r)
	fn := handlertest.Function(func(context.Context, *handler.Call) error { return nil })
	r.Add(handler.Update(kexes, fn, handler.ID("redden"), handler.Field("spec", "color"), handler.Value(handler.Equal("red"))))
	all, err := r.Handlers(scheme.Scheme)
	if err != nil {
		t.Fatal(err)
	}
	arguments := handler.CallContext{Body: object.NewBody(m{"metadata": m{"name": "a"}, "spec": m{"size": int64(3)}})}
	state := func(size int64, color string) object.Essence {
		return object.Essence{"spec": m{"size": size, "color": color}}
	}
	for _, test := range []struct {
		before, after object.Essence
		want          string
	}{
		{nil, state(1, ""), "[create]"},
		{state(1, ""), state(2, ""), "[update resize/spec.size]"},
		{state(2, ""), state(2, "red"), "[update redden/spec.color]"},
		{state(2, ""), state(2, ""), "[]"},
	} {
		due := slices.DeleteFunc(IDsOf(all), func(id string) bool { return !IsSelected(all, arguments, id, test.before, test.after) })
		if got := fmt.Sprint(due); got != test.want {
			t.Errorf("from %v to %v: got %s, want %s", test.before, test.after, got, test.want)
		}
	}
}
