package faults

import (
	"context"
	"fmt"
	"time"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/model/object"
)

const (
	// tickInterval is the interval of the timer.
	tickInterval = 60 * time.Millisecond
	// farewellTime is how long a daemon takes to end.
	farewellTime = 30 * time.Millisecond
)

// companion is a daemon of one object in one operator.
type companion struct {
	by  *stormOperator
	uid string
}

// accompany declares a daemon, a timer, an event handler, and an index.
func (o *stormOperator) accompany(r *kopf.Registry, kex kopf.Selector) {
	if third := kopf.Labels(map[string]kopf.Matcher{"example.com/third": kopf.Equal("a")}); o.storm.free {
		r.Daemon(kex, o.daemon, third, kopf.ID("daemon"))
	} else {
		r.Daemon(kex, o.daemon, kopf.ID("daemon"))
	}
	r.Timer(kex, o.tick, kopf.ID("timer"), kopf.Interval(tickInterval))
	r.OnEvent(kex, o.event, kopf.ID("event"))
	o.index = kopf.NewIndex(r, kex, func(_ context.Context, c *kopf.Indexed) (map[string]string, error) {
		return map[string]string{c.Name(): seen(c)}, nil
	}, kopf.ID("index"))
}

// seen describes what a background handler has seen of the object.
func seen(c interface{ Body() *object.Body }) string {
	a, _ := c.Body().Spec().Int64("a")
	b, _ := c.Body().Spec().Int64("b")
	return fmt.Sprintf("%d, %d, %v", a, b, c.Body().Labels())
}

// daemon writes what it sees first, and waits until it must stop.
func (o *stormOperator) daemon(ctx context.Context, t *kopf.Task) error {
	s, me := o.storm.subject(t.Name()), companion{o, string(t.UID())}
	if !s.accompanied(me) {
		return errDead
	}
	defer s.left(me)
	if t.Retry() == 0 && !o.storm.calm.Load() {
		t.Patch().Merge(map[string]any{"status": map[string]any{"daemon": map[string]any{"text": seen(t), "uid": me.uid}}})
		return kopf.Temporary(fmt.Errorf("this was the beginning"), farewellTime)
	}
	select {
	case <-t.Stopped():
		<-time.After(farewellTime)
	case <-ctx.Done():
	}
	return nil
}

// accompanied notes the start of a daemon, unless its operator is dead.
func (s *subject) accompanied(c companion) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.by.dead.Load() {
		return false
	}
	s.note("%s starts a daemon", c.by.name)
	if s.company[c]++; s.company[c] > 1 {
		s.breach("%s runs %d daemons at once", c.by.name, s.company[c])
	}
	for _, other := range s.othersThan(c.by) {
		if s.company[companion{other, c.uid}] > 0 {
			s.breach("%s starts a daemon while that of %s runs", c.by.name, other.name)
		}
	}
	if s.uid == c.uid && s.storm.strict() && !s.committed.isHeld() {
		s.breach("a daemon was started before the finalizer was there")
	}
	return true
}

func (s *subject) left(c companion) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.company[c]--
	if !c.by.dead.Load() {
		s.note("a daemon of %s has ended", c.by.name)
	}
}

// tick and event copy what they see to the status.
func (o *stormOperator) tick(_ context.Context, t *kopf.Tick) error {
	if o.dead.Load() {
		return errDead
	}
	t.SetResult(map[string]any{"text": seen(t), "uid": string(t.UID())})
	return nil
}

func (o *stormOperator) event(_ context.Context, e *kopf.WatchEvent) error {
	if o.dead.Load() {
		return errDead
	}
	o.storm.subject(e.Name()).dawdle()
	e.Patch().Merge(map[string]any{"status": map[string]any{"event": map[string]any{"text": seen(e), "uid": string(e.UID())}}})
	return nil
}

// dawdle takes a while, by chance, in which other events can happen.
func (s *subject) dawdle() {
	s.mu.Lock()
	s.events++
	dice := s.storm.dice(s.name, "event", s.events)
	s.mu.Unlock()
	if dice.IntN(3) == 0 && !s.storm.calm.Load() {
		<-time.After(upTo(dice, 150*time.Millisecond))
	}
}

// hasDaemon reports whether a daemon must run for an object.
func (s *subject) hasDaemon(body *object.Body) bool {
	return s.storm.background && (!s.storm.free || body.Labels()["example.com/third"] == "a")
}

// isAccompanied returns an error unless the background handlers have seen the last state. The
// subject is locked.
func (s *subject) isAccompanied(now state) error {
	if !s.storm.background {
		return nil
	}
	last := seen(now)
	switch indexed := s.storm.operator.index.Get(s.name); {
	case now.result("timer") != last:
		return fmt.Errorf("the timer has seen %s, not %s", now.result("timer"), last)
	case now.result("event") != last && !s.policy.used:
		return fmt.Errorf("the event handler has seen %s, not %s", now.result("event"), last)
	case len(indexed) != 1 || indexed[0] != last:
		return fmt.Errorf("the index has %q, not %s", indexed, last)
	}
	for c, running := range s.company {
		if running > 0 && c.by == s.storm.operator && c.uid != s.uid {
			return fmt.Errorf("a daemon of an earlier object runs")
		}
	}
	wanted := 0
	if s.hasDaemon(now.body) {
		wanted = 1
	}
	if running := s.company[companion{s.storm.operator, s.uid}]; running != wanted {
		return fmt.Errorf("there are %d daemons, not %d", running, wanted)
	}
	return nil
}

// isAbandoned returns an error if something runs for an object that is gone. The subject is locked.
func (s *subject) isAbandoned() error {
	for c, running := range s.company {
		if running > 0 && !c.by.dead.Load() {
			return fmt.Errorf("a daemon of %s runs for an object that is gone", c.by.name)
		}
	}
	if index := s.storm.operator.index; index != nil && index.Has(s.name) {
		return fmt.Errorf("the object is gone, and the index has it")
	}
	return nil
}
