package faults

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"

	"github.com/kopf-go/kopf/pkg/backoff"
	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/lifecycles"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/storage"
	"github.com/kopf-go/kopf/test/operators"
	"github.com/kopf-go/kopf/test/testenv"
)

// stormOperator is one operator in a storm.
type stormOperator struct {
	link
	storm   *storm
	ordinal int
	process interface { // set when started is closed
		Stop()
		State() kopf.OperatorState
	}
	started chan struct{}
	candidacy
	nursery *gate                       // for the watches of children, which can be late alone
	index   *kopf.Index[string, string] // nil without background handlers
	paused  atomic.Bool                 // by an operator of Kopf
	member  atomic.Pointer[string]      // the name of its Lease, with shards
	busy    atomic.Int32                // counts requests and calls that have not ended
	breaks  atomic.Int32                // counts broken watches
	listed  atomic.Int32                // counts lists of all objects, also those of watches
	hired   atomic.Bool                 // it has had a worker
	deaths  atomic.Int32                // counts the ends of its worker that were meant to be
}

// start runs the next operator, or lets the one on standby lead.
func (s *storm) start() {
	if o := s.standby.Swap(nil); o != nil {
		s.operator = o
		s.note("%s leads", o.name)
		o.lead()
		time.AfterFunc(lag, func() { o.watches.open() })
	} else {
		o := s.newOperator()
		s.operator = o
		o.lead()
		o.run()
	}
	if s.elects {
		o := s.newOperator()
		s.standby.Store(o)
		go o.run() // it can be ready only when the lease has a holder
	}
}

func (s *storm) newOperator() *stormOperator {
	s.lives++
	o := &stormOperator{
		link: newLink(fmt.Sprintf("operator %d", s.lives), s.cluster), storm: s, ordinal: s.lives,
		started: make(chan struct{}), nursery: newGate(), candidacy: candidacy{chosen: make(chan struct{})},
	}
	if s.isVirtual {
		o.travel = s.distances(o.name)
		o.watches.travel, o.nursery.travel = o.travel, o.travel
	}
	s.mu.Lock()
	s.operators = append(s.operators, o)
	s.mu.Unlock()
	s.note("%s starts", o.name)
	for _, subject := range s.subjects {
		subject.lowerLimit()
	}
	return o
}

// run starts the process, and waits until it is ready.
func (o *stormOperator) run() {
	s := o.storm
	if s.outdated.Load() != nil {
		o.watches.shut()
		time.AfterFunc(lag, func() { o.watches.open(); s.outdated.Store(nil) })
	}
	registry := kopf.NewRegistry()
	o.declare(registry, kopf.Resource("kopf.dev", "v1", "kopfexamples"))
	defer close(o.started)
	if !s.elects {
		o.process = ordinary{operators.Start(s.t, o.config(o.route), s.namespace, registry, o.adjust)}
		return
	}
	options := kopf.Options{Registry: registry, Config: o.config(o.route), Logger: testenv.Logger()}
	options.Settings.Scope.Namespaces = []string{s.namespace}
	o.adjust(&options)
	process, err := startReplica(options, func(err error) {
		s.note("%s has ended: %v", o.name, err)
		go o.die()
	})
	s.try(err)
	o.process = process
}

// ordinary is an operator without other replicas.
type ordinary struct{ *operators.Operator }

// State returns the state of the operator.
func (o ordinary) State() kopf.OperatorState { return o.Operator.State() }

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
	options.Logger = logr.New(listener{LogSink: options.Logger.GetSink(), operator: o})
	execution.Lifecycle = oneOf(dice,
		lifecycles.AllAtOnce, lifecycles.OneByOne, lifecycles.AsSoonAsPossible, o.shuffled, o.randomized)
	execution.CheckpointInterval = oneOf(dice, time.Second, time.Nanosecond, 10*time.Millisecond)
	if o.storm.families {
		options.Settings.Name = "storm"
	}
	if o.storm.reviews {
		o.reviewed(&options.Settings.Admission)
	}
	o.storm.peers(options)
	options.Settings.Replicas = o.storm.electing()
	persistence.ConsistencyTimeout = 50 * time.Millisecond
	persistence.DiffBase = diffBase
	if o.storm.statusRecords {
		persistence.Progress = storage.StatusProgress{}
	}
}

// shuffled and randomized are the lifecycles of these names, with the dice of the storm.
func (o *stormOperator) shuffled(due []lifecycles.Due) []lifecycles.Due {
	if len(due) == 0 {
		return due
	}
	body := due[0].Object
	dice := o.storm.dice(o.name, "order", body.Name(), body.ResourceVersion(), len(due))
	shuffled := slices.Clone(due)
	dice.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
	return shuffled
}

func (o *stormOperator) randomized(due []lifecycles.Due) []lifecycles.Due {
	return lifecycles.OneByOne(o.shuffled(due))
}

// diffBase is where the operators of storms store the base.
var diffBase = storage.AnnotationsDiffBase{IgnoredFields: []object.Path{ignored, {"metadata", "annotations", markKey}}}

// die stops all effects of the operator. What it has not recorded is forgotten.
func (o *stormOperator) die() {
	defer o.storm.lock()()
	if o.dead.Swap(true) {
		return
	}
	for _, s := range o.storm.subjects {
		if s.isHandledBy(o) {
			s.forget()
		}
		s.noteRead(o)
	}
	o.watches.release()
	o.nursery.open()
	o.storm.note("%s is dead", o.name)
	o.storm.crashed <- o
}

// stop stops the operator gracefully, without waiting.
func (o *stormOperator) stop() {
	o.storm.note("%s stops", o.name)
	go func() {
		o.end()
		o.die()
	}()
}

// end ends the process. A handler can ask for that before the process has started.
func (o *stormOperator) end() {
	<-o.started
	o.process.Stop()
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
	how(o.nursery)
	time.AfterFunc(upTo(dice, 300*time.Millisecond), func() { o.nursery.open() })
	how(o.watches)
	time.AfterFunc(upTo(dice, 300*time.Millisecond), func() { o.watches.open() })
}
