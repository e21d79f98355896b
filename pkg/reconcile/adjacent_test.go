package reconcile

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/internal/handlertest"
	"github.com/kopf-go/kopf/internal/registry"
	"github.com/kopf-go/kopf/pkg/model/cause"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/selector"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/kube"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/watch"
	"github.com/kopf-go/kopf/pkg/reconcile/tilingtest"
	"github.com/kopf-go/kopf/pkg/storage"
)

// TestChangesLieEndToEnd plays random lives of an object: it changes at any moment, handlers
// fail, writes are lost or conflict, operators die, and operators of Kopf take over. The same
// seed always gives the same life.
func TestChangesLieEndToEnd(t *testing.T) { playLives(t, 1000, false) }

// TestChangesLieEndToEndApart is the same with records in the status, and the base in an
// annotation: the end of a cycle takes two writes.
func TestChangesLieEndToEndApart(t *testing.T) { playLives(t, 1000, true) }

func playLives(t *testing.T, lives int, apart bool) {
	if testing.Short() {
		lives = lives * 3 / 20
	}
	for seed := range lives {
		life := &life{seed: uint64(seed), apart: apart}
		synctest.Test(t, func(t *testing.T) { life.play(t) })
		if problems := life.ledger.Problems(); len(problems) > 0 || life.broken != "" {
			t.Errorf("seed %d: %s\n%s\nthe object: %s\nthe life:\n%s", seed, life.broken, strings.Join(problems, "\n"),
				jsonOf(life.server.object), strings.Join(life.log, "\n"))
			return
		}
	}
}

// life is the life of one object with its operators.
type life struct {
	seed   uint64
	apart  bool // the records are in the status
	rand   *rand.Rand
	server *oneObject
	ledger *tilingtest.Ledger
	log    []string
	broken string

	t       *testing.T
	workers *workers
	cache   *watch.Stream
	dead    bool
	rested  bool // the last pass has found nothing left to do
	// settling is set at the end: nothing changes or fails anymore.
	settling bool
	kopf     bool // an operator of Kopf has handled the object
	changes  int
}

func jsonOf(value any) string {
	text, _ := json.Marshal(value)
	return string(text)
}

func (l *life) note(format string, args ...any) {
	l.log = append(l.log, fmt.Sprintf("%6s  ", time.Since(born).Truncate(time.Millisecond))+fmt.Sprintf(format, args...))
}

// born is the time at which bubbles begin.
var born = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

func (l *life) play(t *testing.T) {
	l.t, l.rand = t, rand.New(rand.NewPCG(l.seed, 0))
	l.ledger = tilingtest.New("field_a/spec.a", "field_b/spec.b", "all", "parent/x", "parent/y")
	l.server = &oneObject{object: m{
		"apiVersion": "kopf.dev/v1", "kind": "KopfExample",
		"metadata": m{"name": "a", "namespace": "ns", "uid": "u-1", "resourceVersion": "1", "labels": m{"on": "yes"}},
		"spec":     m{"a": 0, "b": 0},
	}, version: 1, hasStatus: l.apart}
	before := m{}
	l.server.committed = func() {
		l.note("written: %s", l.server.stored())
		l.recorded(before)
		before = maps.Clone(l.server.annotations())
	}
	l.start(false)
	for range 4 + l.rand.IntN(14) {
		l.step()
	}
	l.settle()
}

// recorded keeps what a write has recorded. If the records are apart, the first of two writes
// records the end of a cycle, and the positions that it has; the second one records all others.
func (l *life) recorded(before m) {
	base, open := before[kopfPrefix+"last-handled-configuration"], before[startedKey]
	now := l.server.annotations()
	switch {
	case !l.apart || jsonOf(now) == jsonOf(before):
		l.ledger.Record()
	case base != now[kopfPrefix+"last-handled-configuration"] || open != nil && now[startedKey] == nil:
		l.ledger.Record()
	default:
		l.ledger.RecordEnds(l.hasPosition)
	}
}

// hasPosition reports whether the open cycle itself says where a handler has ended, and no record
// of an earlier attempt contradicts it. Those of an earlier cycle do not.
func (l *life) hasPosition(id string) bool {
	if id == "parent/field" {
		id = "parent/field/spec.a"
	}
	var cycle struct {
		Cycle string
		At    map[string]int
	}
	text, _ := l.server.annotations()[startedKey].(string)
	_ = json.Unmarshal([]byte(text), &cycle)
	found, _ := object.Lookup(l.server.object, object.Path{"status", "kopf", "progress"})
	records, _ := found.(m)
	_, isStored := cycle.At[id]
	stale := slices.ContainsFunc(slices.Collect(maps.Values(records)), func(r any) bool {
		token := r.(m)["cycle"]
		return token != nil && token != cycle.Cycle
	})
	return isStored && (stale || records[id] == nil)
}

const startedKey = kopfPrefix + "last-handled-configuration-started"

// step makes one random thing happen.
func (l *life) step() {
	switch l.rand.IntN(12) {
	case 0, 1, 2:
		l.change()
	case 3, 4, 5, 6, 7:
		l.pass()
	case 8, 9:
		l.breakNextWrite()
		l.pass()
		l.server.before, l.server.after, l.server.skip = nil, nil, 0
	case 10:
		l.note("the operator restarts")
		l.ledger.Forget()
		l.start(true)
	case 11:
		if l.rand.IntN(3) == 0 && !l.apart {
			l.kopfPass()
			l.start(true)
		}
	}
}

// change changes the object as a user does.
func (l *life) change() {
	if l.settling || l.changes >= 8 { // no more states are stored
		return
	}
	l.changes++
	switch l.rand.IntN(8) {
	case 0:
		l.server.change(m{"metadata": m{"labels": m{"on": []string{"yes", "no"}[l.rand.IntN(2)]}}})
		l.ledger.Loosen("labeled")
	case 1, 2:
		l.server.change(m{"spec": m{"b": l.rand.IntN(3)}})
	case 3:
		l.server.change(m{"spec": m{"a": nil}})
	default:
		l.server.change(m{"spec": m{"a": l.rand.IntN(3)}})
	}
	l.note("changed: %s", jsonOf(l.server.essence()))
}

// breakNextWrite decides how the next write of the operator fails.
func (l *life) breakNextWrite() {
	lost := func() error { return errConnection }
	die := func() error {
		l.note("the operator dies")
		l.dead, l.server.down = true, true
		l.ledger.Forget()
		return errConnection
	}
	conflict := func() error { l.change(); return nil }
	if l.apart {
		l.server.skip = l.rand.IntN(3)
		// Only its parent's record says that there is a sub-handler that has nothing to do. It
		// may be written never, and the sub-handler begins where its parent is.
		l.ledger.Loosen("parent/field")
	}
	switch l.rand.IntN(5) {
	case 0:
		l.server.before = conflict
	case 1:
		l.server.before = lost
	case 2:
		l.server.after = lost
	case 3:
		l.server.before = die
	case 4:
		l.server.after = die
	}
}

// start starts an operator.
func (l *life) start(again bool) {
	handlers := handlersOf(l.t, l.declare)
	config := Config{Handlers: handlers, Logger: logr.Discard(), Context: withCall}
	if l.apart {
		config.Settings.Persistence.Progress = storage.StatusProgress{}
	}
	e := New(config)
	if l.seed%2 == 0 {
		e.maxUnpacked = 0 // as if many were running
	}
	api, err := kube.New(&rest.Config{Host: "http://localhost", QPS: -1}, &http.Client{Transport: l.server}, kex.Resource, e.Settings)
	if err != nil {
		l.t.Fatal(err)
	}
	resource := kex
	resource.Status = l.apart
	r := newResource(watch.NewResource(resource, api), handlers)
	e.resources.put(r)
	l.cache = watch.NewStream(l.t.Context(), r.Resource, "", unobserved{})
	r.Add(l.cache)
	l.workers = &workers{engine: e, term: term{calls: l.t.Context(), writes: l.t.Context(), stopping: make(chan struct{})}}
	e.objects.of(keyOf("a")).initial.Store(again)
	l.dead, l.server.down = false, false
}

// pass makes one pass, and waits for the next one, or not.
func (l *life) pass() {
	if !l.settling && l.rand.IntN(8) == 0 && l.workers.engine.resources.get(kex.String()).Size() > 0 {
		l.note("a pass over a stale version")
	} else {
		snapshot, err := object.ParseSnapshot([]byte(jsonOf(l.server.object)))
		if err != nil {
			l.t.Fatal(err)
		}
		if err := l.cache.Add(snapshot); err != nil {
			l.t.Fatal(err)
		}
	}
	e := l.workers.engine
	wake, err := l.run(l.workers.newPass(e.resources.get(kex.String()), keyOf("a"), &l.workers.term))
	l.rested = wake == 0 && err == nil && l.workers.engine.objects.of(keyOf("a")).reconciledVersion == strconv.Itoa(l.server.version)
	if l.note("the pass ends: again in %s, %v", wake, err); l.dead {
		l.start(true)
		return
	}
	if l.settling || l.rand.IntN(2) == 0 {
		time.Sleep(wake)
	}
}

// run is an entire pass, in one goroutine.
func (l *life) run(p *pass) (wake time.Duration, err error) {
	p.engine.permits.Begin(p.key.Resource, nil)
	defer p.engine.permits.Release()
	next, err := p.begin(l.t.Context())
	next, err = makeCalls(p, next, err)
	return next.requeueAfter(), err
}

// settle makes passes without any failures until nothing is left to do, and checks the result.
func (l *life) settle() {
	l.settling = true
	l.note("settling")
	for range 40 {
		if l.pass(); l.rested {
			l.finish()
			return
		}
		time.Sleep(time.Minute)
	}
	l.broken = "the object does not come to rest"
}

func (l *life) finish() {
	spec, all := l.server.object["spec"].(m), jsonOf(l.server.essence())
	a := stateOf(object.NewValue(spec["a"]))
	last := map[string]string{
		"field_a/spec.a": a, "field_b/spec.b": jsonOf(spec["b"]),
		"all": all, "updated": all, "resumed": all, "parent/x": all, "parent/y": all, "parent/field": a,
	}
	if labels, _ := l.server.object["metadata"].(m)["labels"].(m); labels["on"] == "yes" {
		last["labeled"] = all
	}
	l.ledger.Finish(last)
	for key := range l.server.annotations() {
		left := strings.HasSuffix(key, "-started") && l.kopf
		if key != kopfPrefix+"last-handled-configuration" && !left {
			l.broken = "the annotation is left: " + key
		}
	}
	if left, _ := object.Lookup(l.server.object, object.Path{"status", "kopf", "progress"}); left != nil && len(left.(m)) > 0 {
		l.broken = "records are left in the status: " + jsonOf(left)
	}
}

// declare declares the handlers: of fields, of everything, of resuming objects, with a filter,
// and with sub-handlers; some share their function.
func (l *life) declare(r *registry.Registry) {
	kex := selector.New("kopfexamples")
	fn := func(id string) handler.Function { return handlertest.Function(l.handle(id)) }
	r.Add(handler.ForField(kex, []string{"spec", "a"}, fn("field_a/spec.a"), handler.ID("field_a")))
	r.Add(handler.ForField(kex, []string{"spec", "b"}, fn("field_b/spec.b"), handler.ID("field_b")))
	for _, id := range []string{"all", "labeled", "parent"} {
		declared := fn(id)
		if id == "parent" {
			declared = handlertest.Function(l.parent)
		}
		var create []handler.ChangeOption
		var update []handler.ChangeOption
		if id == "labeled" {
			on := handler.Labels(map[string]handler.Matcher{"on": handler.Equal("yes")})
			create, update = append(create, on), append(update, on)
		}
		r.Add(handler.Create(kex, declared, append(create, handler.ID(id))...))
		r.Add(handler.Update(kex, declared, append(update, handler.ID(id))...))
	}
	resumed := fn("resumed")
	r.Add(handler.Resume(kex, resumed, handler.ID("resumed")))
	r.Add(handler.Update(kex, resumed, handler.ID("resumed")))
	r.Add(handler.Update(kex, fn("updated"), handler.ID("updated")))
}

func (l *life) parent(_ context.Context, c *handler.Call) error {
	l.note("parent is called")
	for _, id := range []string{"x", "y"} {
		handlertest.Subhandler(c, id, l.handle("parent/"+id))
	}
	handlertest.Subhandler(c, "field", l.handle("parent/field"), handler.Field("spec", "a"))
	return nil
}

// handle returns a handler that succeeds, is retried, or fails.
func (l *life) handle(id string) func(context.Context, *handler.Call) error {
	return func(_ context.Context, c *handler.Call) error {
		before, after := stateOf(c.Transition().Old), stateOf(c.Transition().New)
		ledger := l.ledger
		switch {
		case c.Reason() == cause.Resume: // it sees no change
			ledger = tilingtest.New()
		case id == "resumed" || strings.HasPrefix(id, "parent/"):
			ledger.Repeat(id, before, after)
		default:
			ledger.Call(id, before, after)
		}
		outcome := l.rand.IntN(10)
		if l.settling {
			outcome = 9
		}
		if l.rand.IntN(8) == 0 {
			time.Sleep(time.Duration(l.rand.IntN(800)) * time.Millisecond)
		}
		l.note("%s: %s → %s, outcome %d", id, before, after, outcome)
		if l.rand.IntN(10) == 0 {
			l.change()
		}
		switch {
		case outcome < 3:
			return handler.Temporary(errors.New("not yet"), time.Duration(l.rand.IntN(20))*time.Second)
		case outcome == 3:
			ledger.End(id, after)
			return handler.Permanent(errors.New("never"))
		default:
			ledger.End(id, after)
			return nil
		}
	}
}

// stateOf returns what a handler sees as text: the essence, or its field.
func stateOf(v object.Value) string {
	value := v.Any()
	if value == nil {
		return ""
	}
	if essence, isMapping := value.(m); isMapping {
		labels, _ := object.Lookup(essence, object.Path{"metadata", "labels"})
		return jsonOf(m{"spec": essence["spec"], "labels": labels})
	}
	return jsonOf(value)
}
