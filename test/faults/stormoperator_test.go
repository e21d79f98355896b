package faults

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/kopf-go/kopf/pkg/backoff"
	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/lifecycles"
	"github.com/kopf-go/kopf/test/operators"
)

// stormOperator is one operator in a storm.
type stormOperator struct {
	link
	storm   *storm
	process *operators.Operator
}

// start runs the next operator.
func (s *storm) start() {
	s.lives++
	o := &stormOperator{link: newLink(fmt.Sprintf("operator %d", s.lives)), storm: s}
	s.note("%s starts", o.name)
	s.operator = o
	registry := kopf.NewRegistry()
	o.declare(registry, kopf.Resource("kopf.dev", "v1", "kopfexamples"))
	o.process = operators.Start(s.t, o.config(o.route), s.namespace, registry, o.adjust)
}

func (o *stormOperator) adjust(options *kopf.Options) {
	dice := o.storm.dice(o.name)
	hurry(&options.Settings)
	execution := &options.Settings.Execution
	execution.Backoff = backoff.Constant(upTo(dice, 30*time.Millisecond))
	execution.GracePeriod = 2 * time.Second
	execution.Lifecycle = oneOf(dice,
		lifecycles.AllAtOnce, lifecycles.OneByOne, lifecycles.AsSoonAsPossible, lifecycles.Shuffled)
	execution.CheckpointInterval = oneOf(dice, time.Second, time.Nanosecond, 10*time.Millisecond)
	options.Settings.Persistence.ConsistencyTimeout = 50 * time.Millisecond
}

// die stops all effects of the operator. What it has not recorded is forgotten.
func (o *stormOperator) die() {
	defer o.storm.lock()()
	if o.dead.Swap(true) {
		return
	}
	for _, s := range o.storm.subjects {
		s.forget()
	}
	o.watches.open()
	o.storm.note("%s is dead", o.name)
	o.storm.crashed <- o
}

// lock locks all objects, and returns how to unlock them.
func (s *storm) lock() func() {
	for _, subject := range s.subjects {
		subject.mu.Lock()
	}
	return func() {
		for _, subject := range s.subjects {
			subject.mu.Unlock()
		}
	}
}

// stall holds back the watches for a while.
func (o *stormOperator) stall(dice *rand.Rand, how func(*gate)) {
	o.storm.note("the watches of %s stall", o.name)
	how(o.watches)
	time.AfterFunc(upTo(dice, 300*time.Millisecond), func() { o.watches.open() })
}

// declare declares handlers of every kind: of fields, of everything, of resuming objects, with a
// filter, with sub-handlers, and of the deletion; some share their function.
func (o *stormOperator) declare(r *kopf.Registry, kex kopf.Selector) {
	r.OnField(kex, "spec.a", o.handle("field_a/spec.a", nil), kopf.ID("field_a"))
	r.OnField(kex, "spec.b", o.handle("field_b/spec.b", nil), kopf.ID("field_b"))
	all, parent, labeled := o.handle("all", nil), o.handle("parent", o.parent), o.handle("labeled", nil)
	r.OnCreate(kex, all, kopf.ID("all"))
	r.OnUpdate(kex, all, kopf.ID("all"))
	r.OnCreate(kex, parent, kopf.ID("parent"))
	r.OnUpdate(kex, parent, kopf.ID("parent"))
	on := kopf.Labels(kopf.Filters{"on": kopf.Equal("yes")})
	r.OnCreate(kex, labeled, on, kopf.ID("labeled"))
	r.OnUpdate(kex, labeled, on, kopf.ID("labeled"))
	resumed := o.handle("resumed", nil)
	r.OnResume(kex, resumed, kopf.ID("resumed"))
	r.OnUpdate(kex, resumed, kopf.ID("resumed"))
	r.OnUpdate(kex, o.handle("updated", nil), kopf.ID("updated"))
	for _, id := range farewells {
		r.OnDelete(kex, o.handle(id, nil), kopf.ID(id))
	}
}

// farewells are the handlers of the deletion.
var farewells = []string{"release", "farewell"}

func (o *stormOperator) parent(c *kopf.Change) {
	for _, id := range []string{"x", "y"} {
		c.Subhandler(id, o.handle("parent/"+id, nil))
	}
	c.Subhandler("field", o.handle("parent/field/spec.a", nil), kopf.Field("spec", "a"))
}

// handle returns a handler that succeeds, is retried, or fails, by chance. If it has sub-handlers,
// it registers them, and they have the outcomes.
func (o *stormOperator) handle(id string, register func(*kopf.Change)) kopf.ChangeFunc {
	return func(ctx context.Context, c *kopf.Change) error {
		s := o.storm.subject(c.Name())
		n, alive := s.called(o, id, c)
		if !alive {
			return errDead
		}
		if register != nil {
			register(c)
			return nil
		}
		if again, err := o.fail(ctx, o.storm.dice(s.name, id, n)); again {
			return err
		} else if err != nil {
			s.ended(o, id, c, "")
			return kopf.Permanent(err)
		}
		result := fmt.Sprintf("%d: %s", n, stateOf(c.New()))
		c.SetResult(map[string]any{"text": result, "uid": string(c.UID())})
		s.ended(o, id, c, result)
		return nil
	}
}

// fail returns an error by chance, sometimes after a while: to try again, or for ever.
func (o *stormOperator) fail(ctx context.Context, dice *rand.Rand) (again bool, err error) {
	outcome := dice.IntN(10)
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
