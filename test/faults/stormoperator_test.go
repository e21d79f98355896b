package faults

import (
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/kopf-go/kopf/pkg/backoff"
	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/lifecycles"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/storage"
	"github.com/kopf-go/kopf/test/operators"
)

// stormOperator is one operator in a storm.
type stormOperator struct {
	link
	storm   *storm
	ordinal int
	process *operators.Operator // set when started is closed
	started chan struct{}
	index   *kopf.Index[string, string] // nil without background handlers
	paused  atomic.Bool                 // by an operator of Kopf
	busy    atomic.Int32                // counts requests and calls that have not ended
	breaks  atomic.Int32                // counts broken watches
	listed  atomic.Int32                // counts lists of all objects, also those of watches
}

// start runs the next operator.
func (s *storm) start() {
	s.lives++
	o := &stormOperator{link: newLink(fmt.Sprintf("operator %d", s.lives)), storm: s, ordinal: s.lives, started: make(chan struct{})}
	s.note("%s starts", o.name)
	for _, subject := range s.subjects {
		subject.lowerLimit()
	}
	s.operator = o
	if s.outdated.Load() != nil {
		o.watches.shut()
		time.AfterFunc(lag, func() { o.watches.open(); s.outdated.Store(nil) })
	}
	registry := kopf.NewRegistry()
	o.declare(registry, kopf.Resource("kopf.dev", "v1", "kopfexamples"))
	o.process = operators.Start(s.t, o.config(o.route), s.namespace, registry, o.adjust)
	close(o.started)
}

// lowerLimit notes that a new operator may allow fewer attempts: a handler can then end without
// another call.
func (s *subject) lowerLimit() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ledger.Loosen("limited")
}

func (o *stormOperator) adjust(options *kopf.Options) {
	dice := o.storm.dice(o.name)
	hurry(&options.Settings)
	execution, persistence := &options.Settings.Execution, &options.Settings.Persistence
	execution.Backoff = backoff.Constant(upTo(dice, 30*time.Millisecond))
	execution.GracePeriod = 5 * time.Second
	execution.Lifecycle = oneOf(dice,
		lifecycles.AllAtOnce, lifecycles.OneByOne, lifecycles.AsSoonAsPossible, lifecycles.Shuffled, lifecycles.Randomized)
	execution.CheckpointInterval = oneOf(dice, time.Second, time.Nanosecond, 10*time.Millisecond)
	o.storm.peers(options)
	persistence.ConsistencyTimeout = 50 * time.Millisecond
	persistence.DiffBase = diffBase
	if o.storm.statusRecords {
		persistence.Progress = storage.StatusProgress{}
	}
}

// diffBase is where the operators of storms store the base.
var diffBase = storage.AnnotationsDiffBase{IgnoredFields: []object.Path{ignored}}

// die stops all effects of the operator. What it has not recorded is forgotten.
func (o *stormOperator) die() {
	defer o.storm.lock()()
	if o.dead.Swap(true) {
		return
	}
	for _, s := range o.storm.subjects {
		s.forget()
		s.noteRead(o)
	}
	o.watches.release()
	o.storm.note("%s is dead", o.name)
	o.storm.crashed <- o
}

// stop stops the operator gracefully, without waiting.
func (o *stormOperator) stop() {
	o.storm.note("%s stops", o.name)
	go func() {
		<-o.started // a handler can be called, and stop it, before
		o.process.Stop()
		o.die()
	}()
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

// mostBreaks limits how often the watches of an operator break: the client waits longer and longer before it
// watches again.
const mostBreaks = 1

func (o *stormOperator) mayBreakWatches() bool { return o.breaks.Load() < mostBreaks }

// stall holds back the watches for a while.
func (o *stormOperator) stall(dice *rand.Rand, how func(*gate)) {
	o.storm.note("the watches of %s stall", o.name)
	how(o.watches)
	time.AfterFunc(upTo(dice, 300*time.Millisecond), func() { o.watches.open() })
}
