package faults

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/model/object"
)

// attempts returns the limit of a handler. It is lower for every second operator.
func (o *stormOperator) attempts() int { return 3 - o.ordinal%2 }

// declare declares handlers of every kind: of fields, of everything, of resuming objects, with a
// filter, with limits, with sub-handlers, and of the deletion; some share their function.
func (o *stormOperator) declare(r *kopf.Registry, kex kopf.Selector) {
	if o.storm.served {
		o.employ(r)
	} else {
		o.declareChanges(r, kex)
	}
	if o.storm.background {
		o.accompany(r, kex)
	}
	if o.storm.families {
		o.raise(r, kex)
	}
	if o.storm.ordered {
		o.lineUp(r, kex)
	}
	if o.storm.reviews {
		o.review(r, kex)
	}
}

// declareChanges declares the handlers of changes. A worker has the same: see declarations.
func (o *stormOperator) declareChanges(r *kopf.Registry, kex kopf.Selector) {
	r.OnField(kex, "spec.a", o.handle("field_a/spec.a", nil), kopf.ID("field_a"))
	r.OnField(kex, "spec.b", o.handle("field_b/spec.b", nil), kopf.ID("field_b"))
	all, parent, labeled := o.handle("all", nil), o.handle("parent", o.parent), o.handle("labeled", nil)
	r.OnCreate(kex, all, kopf.ID("all"))
	r.OnUpdate(kex, all, kopf.ID("all"))
	r.OnCreate(kex, parent, kopf.ID("parent"))
	r.OnUpdate(kex, parent, kopf.ID("parent"))
	on := kopf.Labels(map[string]kopf.Matcher{"on": kopf.Equal("yes")})
	r.OnCreate(kex, labeled, on, kopf.ID("labeled"))
	r.OnUpdate(kex, labeled, on, kopf.ID("labeled"))
	resumed := o.handle("resumed", nil)
	r.OnResume(kex, resumed, kopf.ID("resumed"))
	r.OnUpdate(kex, resumed, kopf.ID("resumed"))
	r.OnUpdate(kex, o.handle("updated", nil), kopf.ID("updated"))
	r.OnUpdate(kex, o.handle("limited", nil), kopf.ID("limited"), kopf.Retries(o.attempts()))
	r.OnUpdate(kex, o.handle("timed", nil), kopf.ID("timed"), kopf.Timeout(longest))
	if !o.storm.free {
		r.OnDelete(kex, o.handle("release", nil), kopf.ID("release"))
		r.OnDelete(kex, o.handle("farewell", nil), kopf.ID("farewell"))
	}
	r.OnDelete(kex, o.handle("mourner", nil), on, kopf.ID("mourner"))
	r.OnDelete(kex, o.handle("holder", nil), on, kopf.ID("holder"), kopf.HoldOnFailure())
}

// farewells returns the handlers that must end before an object is released.
func (s *storm) farewells(body *object.Body) []string {
	var ids []string
	if !s.free {
		ids = append(ids, "release", "farewell")
	}
	if body.Labels()["on"] == "yes" {
		ids = append(ids, "mourner", "holder")
	}
	return ids
}

// needsFinalizer reports whether an object must have the finalizer before a handler is called.
func (s *subject) needsFinalizer(body *object.Body) bool {
	return s.hasDaemon(body) || len(s.storm.farewells(body)) > 0
}

func (o *stormOperator) parent(c *kopf.Change) {
	for _, id := range []string{"x", "y"} {
		c.Subhandler(id, o.handle("parent/"+id, nil))
	}
	c.Subhandler("field", o.handle("parent/field/spec.a", nil), kopf.Field("spec", "a"))
}

// change is what a handler in a storm is called for, and what it asks for: in this process, or in a worker.
type change interface {
	Name() string
	UID() types.UID
	Reason() kopf.Reason
	Retry() int
	Old() object.Value
	New() object.Value
	Body() *object.Body
	SetResult(value any)
	// enter makes the handler append an entry to the journals.
	enter(entry string)
	// merge makes the handler merge something into the object.
	merge(fields map[string]any)
}

// local is the change of a handler in this process.
type local struct{ *kopf.Change }

func (c local) merge(fields map[string]any) { c.Patch().Merge(fields) }

// conclusion is that of a call.
type conclusion struct {
	err error
	end *ending // of the handler; nil if it is called again
}

// handle returns a handler in this process. If it has sub-handlers, it registers them.
func (o *stormOperator) handle(id string, register func(*kopf.Change)) func(context.Context, *kopf.Change) error {
	return func(ctx context.Context, c *kopf.Change) error {
		defer o.works()()
		did := o.act(ctx, id, local{c})
		if register != nil && did.err == nil {
			register(c)
		}
		if did.end != nil {
			s := o.storm.subject(c.Name())
			s.mu.Lock()
			defer s.mu.Unlock()
			s.end(o, id, local{c}, *did.end)
		}
		return did.err
	}
}

// act is what a handler does: it succeeds, is retried, or fails, by chance. If it has sub-handlers, they have the outcomes.
func (o *stormOperator) act(ctx context.Context, id string, c change) conclusion {
	s := o.storm.subject(c.Name())
	n, alive := s.called(o, id, c)
	if !alive {
		return conclusion{err: errDead}
	}
	s.judgeTime(ctx, id, c)
	if id == "parent" {
		return conclusion{}
	}
	defer s.inCall(o, id, c.UID())()
	dice := o.storm.dice(s.name, id, n)
	s.interfere(o, dice)
	s.moveDuring(ctx, o, id, dice)
	again, err := o.fail(ctx, id, dice)
	e := &ending{reason: c.Reason()}
	if again {
		if dice.IntN(3) == 0 && c.Reason() == kopf.ReasonUpdate {
			s.takeBack()
		}
		if !o.isLast(id, c) {
			e = nil
		}
		return conclusion{err, e}
	}
	if id == "holder" && dice.IntN(2) == 0 {
		err = errors.New("never")
	}
	if err != nil {
		return conclusion{kopf.Permanent(err), e}
	}
	e.result = fmt.Sprintf("%d: %s", n, stateOf(c.New()))
	c.SetResult(map[string]any{"text": e.result, "uid": string(c.UID())})
	if dice.IntN(3) == 0 && !strings.HasPrefix(id, "parent/") {
		s.enter(c, e, entry(id, n), dice)
	}
	return conclusion{end: e}
}

// isLast reports whether a handler is not called again if this attempt fails.
func (o *stormOperator) isLast(id string, c change) bool {
	return id == "limited" && c.Retry()+1 == o.attempts()
}

// insider is a handler that is being called for an object.
type insider struct {
	id  string
	uid types.UID
}

// inCall notes that a handler runs, until the returned function is called: never two at once in
// one process, and never two for one object in two processes with shards. Another object of the name can be in another shard.
func (s *subject) inCall(o *stormOperator, id string, uid types.UID) (end func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if other := s.inside[o]; other.id != "" {
		s.breach("%s calls %s while %s runs", o.name, id, other.id)
	}
	for _, other := range s.othersThan(o) {
		if running := s.inside[other]; running.uid == uid {
			s.breach("%s calls %s while %s calls %s", o.name, id, other.name, running.id)
		}
	}
	s.inside[o] = insider{id, uid}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.inside, o)
	}
}

// fail returns an error by chance, sometimes after a while: to try again, or for ever.
func (o *stormOperator) fail(ctx context.Context, id string, dice *rand.Rand) (again bool, err error) {
	outcome := dice.IntN(10)
	switch {
	case id == "limited" || id == "timed":
		outcome = dice.IntN(4)
	case o.storm.gentle:
		outcome = dice.IntN(40)
	case id == "first" || id == "second":
		outcome = dice.IntN(5)
	}
	if o.storm.calm.Load() {
		return false, nil
	}
	if dice.IntN(3) == 0 {
		select {
		case <-time.After(upTo(dice, 40*time.Millisecond)):
		case <-ctx.Done():
			return true, ctx.Err()
		}
	}
	switch outcome {
	case 0, 1:
		return true, kopf.Temporary(errors.New("not yet"), upTo(dice, 60*time.Millisecond))
	case 2:
		return true, errors.New("not now")
	case 3:
		return false, errors.New("never")
	}
	return false, nil
}

// interfere makes something happen during a call, by chance.
func (s *subject) interfere(o *stormOperator, dice *rand.Rand) {
	if s.storm.calm.Load() {
		return
	}
	switch what := dice.IntN(40); {
	case what == 0 && !s.storm.steady:
		o.stop()
		<-time.After(10 * time.Millisecond)
		s.edit(dice)
	case what <= 2:
		s.edit(dice)
	}
}

// enter adds an edit to the result of a call: a transformation, and sometimes a label that the API
// server rejects.
func (s *subject) enter(c change, e *ending, entry string, dice *rand.Rand) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.tiles(c) {
		return
	}
	e.entry = entry
	c.enter(entry)
	if dice.IntN(3) == 0 {
		s.rejects[entry] = true
		c.merge(map[string]any{"metadata": map[string]any{"labels": map[string]any{"example.com/bad": "not valid!"}}})
	}
}
