package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"
)

// counts are what has happened.
type counts struct {
	starts, kills, stops, calls, failures, successes, deletions int
}

func (c *counts) add(other counts) {
	c.starts += other.starts
	c.kills += other.kills
	c.stops += other.stops
	c.calls += other.calls
	c.failures += other.failures
	c.successes += other.successes
	c.deletions += other.deletions
}

func (c counts) String() string {
	return fmt.Sprintf("%d starts, %d kills, %d stops; %d calls, %d failures, %d successes; %d deletions",
		c.starts, c.kills, c.stops, c.calls, c.failures, c.successes, c.deletions)
}

// result is what has come out of a seed.
type result struct {
	counts

	seed    uint64
	took    time.Duration
	history *history
	broken  []string       // what must not happen
	known   map[string]int // the repetitions of calls that have an excuse
	logs    string         // the last lines of the processes
	err     error          // the program could not do its work
}

func (r result) failed() bool { return r.err != nil || len(r.broken) > 0 }

func (r result) String() string {
	outcome := "ok"
	if r.failed() {
		outcome = "FAILED"
	}
	text := fmt.Sprintf("seed %d: %s in %.1fs: %s", r.seed, outcome, r.took.Seconds(), r.counts)
	for _, why := range slices.Sorted(maps.Keys(r.known)) {
		text += fmt.Sprintf("; %d %s", r.known[why], why)
	}
	return text
}

// story is the history, and what is wrong with it.
func (r result) story() string {
	var text strings.Builder
	if r.history != nil {
		text.WriteString(r.history.text())
	}
	text.WriteString(r.logs)
	for _, line := range r.broken {
		text.WriteString("  " + line + "\n")
	}
	if r.err != nil {
		text.WriteString("  " + r.err.Error() + "\n")
	}
	return text.String()
}

// swap runs a seed.
func (a *arena) swap(ctx context.Context, parties [2]party, seed uint64) result {
	began := time.Now()
	result := result{seed: seed}
	r, stop, err := a.newTrial(ctx, seed)
	if err != nil {
		result.err = err
		return result
	}
	result.history = r.history
	result.broken, err = r.live(ctx, newScenario(seed), parties, &result.counts)
	result.err = errors.Join(err, stop())
	j := newJudge(r.history.all(), r.kopf, r.former)
	result.broken = append(result.broken, j.judge()...)
	result.known = j.known
	result.count(r.history.all())
	logs, err := r.readLogs()
	result.broken = append(result.broken, logs...)
	result.err = errors.Join(result.err, err)
	if result.failed() {
		for _, log := range r.logs {
			result.logs += log + ":\n" + tail(log) + "\n"
		}
	}
	for _, log := range r.logs {
		result.err = errors.Join(result.err, os.Remove(log))
	}
	result.took = time.Since(began)
	return result
}

// live runs one process after another, and lets the last one finish.
func (r *trial) live(ctx context.Context, s scenario, parties [2]party, c *counts) (broken []string, err error) {
	for i, phase := range s.phases {
		for _, a := range phase.away {
			if err := r.act(ctx, a); err != nil {
				return broken, err
			}
		}
		p := parties[phase.party]
		started, err := r.start(p)
		if err != nil {
			return broken, err
		}
		c.starts++
		last := i == len(s.phases)-1
		if err := r.untilEnd(ctx, started, phase, last); err != nil {
			broken = append(broken, err.Error())
		}
		if !last && phase.end.kill {
			c.kills++
			started.kill()
			r.history.note("", "The operator is %s.", phase.end)
			continue
		}
		c.stops++
		err = started.stop()
		r.history.note("", "The operator has stopped (%s): %v", phase.end, err)
		if err != nil {
			broken = append(broken, fmt.Sprintf("the operator %s has not stopped as it should: %v", p.name, err))
		}
	}
	return broken, nil
}

// untilEnd does what happens in the life of a process, and returns when it is time to end it.
func (r *trial) untilEnd(ctx context.Context, p *process, now phase, last bool) error {
	events, stop := r.history.follow()
	defer stop()
	ended := time.After(now.end.after)
	if last {
		ended = nil
	}
	actions := slices.SortedStableFunc(slices.Values(now.live), func(a, b action) int { return cmp.Compare(a.after, b.after) })
	ready, seen := time.Now(), 0
	for len(actions) > 0 {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-p.done:
			p.done <- err
			return fmt.Errorf("the operator has ended: %v", err) //nolint:errorlint // nil is possible
		case <-time.After(time.Until(ready.Add(actions[0].after))):
			if err := r.act(ctx, actions[0]); err != nil {
				return err
			}
			actions = actions[1:]
		case e := <-events:
			if seen += e.matches(now.end.on); !last && seen >= now.end.n {
				return r.rest(ctx, actions)
			}
		case <-ended:
			return r.rest(ctx, actions)
		}
	}
	for !last {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case e := <-events:
			if seen += e.matches(now.end.on); seen >= now.end.n {
				return nil
			}
		case <-ended:
			return nil
		}
	}
	return r.untilAtRest(ctx, p)
}

// rest does what is left of the actions of a process that ends.
func (r *trial) rest(ctx context.Context, actions []action) error {
	for _, a := range actions {
		if err := r.act(ctx, a); err != nil {
			return err
		}
	}
	return nil
}

// matches returns 1 if the event is of the kind.
func (e event) matches(on trigger) int {
	matches := false
	switch on {
	case onStart, onEnd:
		matches = e.call != nil && e.call.Phase == string(on)
	case onWrite:
		matches = e.version != nil && len(e.version.records) > 0
	case onTime:
	}
	if matches {
		return 1
	}
	return 0
}

// calm is how long nothing may happen until everything counts as done: more than Kopf waits before
// it handles an object again.
const calm = 2 * time.Second

// untilAtRest waits until operators have nothing left to do for any object.
func (r *trial) untilAtRest(ctx context.Context, p *process) error {
	events, stop := r.history.follow()
	defer stop()
	deadline := time.After(r.patience)
	for {
		quiet := time.After(calm)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-p.done:
			p.done <- err
			return fmt.Errorf("the operator has ended: %v", err) //nolint:errorlint // nil is possible
		case <-events:
			continue
		case <-quiet:
			if len(r.unfinished()) == 0 {
				return nil
			}
		case <-deadline:
			return fmt.Errorf("not finished after %s: %s", r.patience, strings.Join(r.unfinished(), ", "))
		}
	}
}

// unfinished returns the objects that the last operator has something to do for.
func (r *trial) unfinished() []string {
	last := map[string]*version{}
	process := 0
	for _, e := range r.history.all() {
		process = e.process
		if e.version != nil {
			last[e.object] = e.version
		}
	}
	var names []string
	for name, v := range last {
		if !v.isAtRest() || !r.former[process] && v.hasMissed(time.Now()) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// count counts the calls in the history.
func (c *counts) count(events []event) {
	for _, e := range events {
		switch {
		case e.version != nil && e.version.gone:
			c.deletions++
		case e.call == nil:
		case e.call.Phase == "start":
			c.calls++
		case e.call.Outcome == "success":
			c.successes++
		case e.call.Phase == "end":
			c.failures++
		}
	}
}

// alarming matches what no operator may log here: that it does not understand what is stored, or has
// failed itself.
var alarming = regexp.MustCompile(`cannot be read|panic: |panicked|DATA RACE|Throttling for|unexpected error`)

// readLogs returns the lines of the logs that must not be there.
func (r *trial) readLogs() (broken []string, err error) {
	for _, log := range r.logs {
		text, err := os.ReadFile(log)
		if err != nil {
			return broken, err
		}
		for line := range strings.Lines(string(text)) {
			if alarming.MatchString(line) && !strings.Contains(line, "context canceled") { // by a stop
				broken = append(broken, "the log of an operator: "+strings.TrimSpace(line))
			}
		}
	}
	return broken, nil
}
