package faults

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/settings"
	"github.com/kopf-go/kopf/test/testenv"
)

// freezer is the identity of an operator of Kopf with a higher priority.
const freezer = "kopf"

// peers makes operators react to an operator of Kopf. They do not see each other.
func (s *storm) peers(options *kopf.Options) {
	options.Settings.Peering.Identity = "storm"
	options.Settings.Peering.Standalone = !s.pauses
}

// meet creates the peering object.
func (s *storm) meet() {
	s.peering = testenv.NewObject("KopfPeering", s.namespace, settings.DefaultPeeringName, nil)
	s.try(s.cluster.Client().Create(context.Background(), s.peering.DeepCopy()))
}

// pause lets an operator of Kopf work for a while, and the watches of the paused one are late
// afterwards.
func (s *storm) pause(dice *rand.Rand) {
	o := s.operator
	s.freeze(map[string]any{"priority": 1000, "lifetime": 60, "lastseen": time.Now().UTC().Format("2006-01-02T15:04:05.000000")})
	until := time.Now().Add(time.Second)
	for !o.process.State().Paused && time.Now().Before(until) {
		<-time.After(5 * time.Millisecond)
	}
	if !o.process.State().Paused || !o.becomesIdle() || o.dead.Load() {
		s.freeze(nil)
		return
	}
	s.note("%s is paused", o.name)
	o.paused.Store(true)
	if dice.IntN(2) == 0 {
		o.watches.shut()
	}
	for _, subject := range s.subjects {
		subject.edit(dice)
		subject.takeOver(dice)
		subject.edit(dice)
	}
	<-time.After(upTo(dice, 100*time.Millisecond))
	o.paused.Store(false)
	s.note("%s may go on", o.name)
	s.freeze(nil)
	<-time.After(upTo(dice, 300*time.Millisecond))
	o.watches.open()
}

// idleness is how long a paused operator does nothing when all its work has ended.
const idleness = 100 * time.Millisecond

// becomesIdle waits until the operator neither writes nor calls handlers: what has begun before
// the pause may end. It returns false if that takes too long.
func (o *stormOperator) becomesIdle() bool {
	began := time.Now()
	for idle := began; time.Since(idle) < idleness; <-time.After(5 * time.Millisecond) {
		switch {
		case time.Since(began) > stuck || o.dead.Load():
			return false
		case o.busy.Load() > 0:
			idle = time.Now()
		}
	}
	return true
}

// works notes that a request or a call is on its way, until the returned function is called.
func (o *stormOperator) works() (end func()) {
	o.busy.Add(1)
	return func() { o.busy.Add(-1) }
}

// freeze sets the entry of the other operator.
func (s *storm) freeze(entry map[string]any) {
	patch := textOf(map[string]any{"status": map[string]any{freezer: entry}})
	if entry == nil {
		patch = textOf(map[string]any{"status": map[string]any{freezer: nil}})
	}
	s.try(s.cluster.Client().Patch(context.Background(), s.peering.DeepCopy(), merge(patch)))
}
