package main

import (
	"context"
	"fmt"
	"io"
	"time"
)

// waitingFigures holds the figures of an operator whose handlers wait.
type waitingFigures struct {
	Subject     string `json:"subject"`
	Description string `json:"description"`

	Wave Wave `json:"wave"`

	// Handlers is the number of handlers that wait at the same time.
	Handlers int `json:"handlers,omitempty"`
	// BytesPerHandler is the memory of a waiting handler, relative to the operator with the
	// same objects at rest.
	BytesPerHandler Memory `json:"perHandler"`
	// Idle, Waiting, and Finishing are the latencies of another resource: without anything
	// else to do, while the handlers wait, and while they finish.
	Idle      Latency `json:"idle"`
	Waiting   Latency `json:"waiting"`
	Finishing Latency `json:"finishing"`
	// Finished is how long it took from the end of the first handler until all was recorded.
	Finished time.Duration `json:"finishedNanoseconds"`

	Initial Initial `json:"initial"`
}

// Wave is the time to handle objects whose handlers wait.
type Wave struct {
	Objects int           `json:"objects"`
	Wait    time.Duration `json:"waitNanoseconds"`
	// AfterLast is the time from the last creation until all objects were handled.
	AfterLast time.Duration `json:"afterLastNanoseconds"`
}

const (
	waveObjects   = 400
	goalAfterLast = 12 * time.Second // for a wait of 10 seconds
	crowdFactor   = 12               // how much longer the handlers of the crowd wait
	goalHandler   = 10 * 1024        // bytes
)

// waitingSteps returns the steps for the operator of this project, waitingWaveSteps those for
// the hand-written one.
func waitingSteps(m *measurement) []step {
	return append(waitingWaveSteps(m), step{"idle", m.probeIdle}, step{"crowd", m.crowd}, step{"finish", m.finishCrowd}, step{"initial", m.startWithObjects})
}

func waitingWaveSteps(m *measurement) []step {
	return []step{{"start", m.start}, {"warm up", m.warmWaiting}, {"wave", m.wave}}
}

// handlersWait sets how long handlers wait.
func (m *measurement) handlersWait(wait time.Duration) error {
	_, err := m.operator.ask(commandWait + " " + wait.String())
	return err
}

func (m *measurement) warmWaiting(ctx context.Context) error {
	if err := m.handlersWait(0); err != nil {
		return err
	}
	if err := m.runBurst(ctx, m.creation(m.warmUp())); err != nil {
		return err
	}
	return m.runBurst(ctx, m.deletion(m.warmUp()))
}

// wave measures a number of objects whose handlers wait for some seconds.
func (m *measurement) wave(ctx context.Context) error {
	if err := m.handlersWait(m.wait); err != nil {
		return err
	}
	objects := min(waveObjects, m.objects)
	m.observer.expectHandled(objects, firstRevision)
	if err := m.load.each(ctx, objects, m.load.create); err != nil {
		return err
	}
	began := time.Now()
	if err := m.observer.wait(ctx); err != nil {
		return err
	}
	m.waitingFigures.Wave = Wave{objects, m.wait, time.Since(began)}
	return m.runBurst(ctx, m.deletion(objects))
}

// leastChanges is the number of changes of the probe for a latency.
const leastChanges = 300

func never() (bool, error) { return false, nil }

func (m *measurement) probeIdle(ctx context.Context) (err error) {
	if m.probe, err = newProbe(ctx, m.clients); err != nil {
		return err
	}
	m.waitingFigures.Idle, err = m.probe.measure(ctx, leastChanges, never)
	return err
}

// crowd measures the operator while the handlers of all objects wait.
func (m *measurement) crowd(ctx context.Context) error {
	if err := m.handlersWait(crowdFactor * m.wait); err != nil {
		return err
	}
	m.observer.expectHandled(m.objects, firstRevision)
	if err := m.load.each(ctx, m.objects, m.load.create); err != nil {
		return err
	}
	now, err := m.settled(ctx, func(now sample) bool { return now.Tallied.Waiting == int64(m.objects) })
	if err != nil {
		return err
	}
	m.waitingFigures.Handlers = int(now.Tallied.Waiting)
	if m.waitingFigures.BytesPerHandler, err = m.leastMemory(); err != nil {
		return err
	}
	end, err := m.profile("waiting")
	if err != nil {
		return err
	}
	if m.waitingFigures.Waiting, err = m.probe.measure(ctx, leastChanges, never); err != nil {
		return err
	}
	return end()
}

// finishCrowd measures the operator while all handlers finish, and then at rest.
func (m *measurement) finishCrowd(ctx context.Context) error {
	_, err := m.settledTally(ctx, func(t tallied) bool { return t.Waiting < int64(m.objects) })
	if err != nil {
		return err
	}
	began := time.Now()
	if m.waitingFigures.Finishing, err = m.probe.measure(ctx, 1, m.isHandling()); err != nil {
		return err
	}
	m.waitingFigures.Finished = time.Since(began)
	m.probe.watch.Stop() // the API server waits for it when it stops
	if _, err := m.operator.quiet(ctx); err != nil {
		return err
	}
	rest, err := m.leastMemory()
	m.waitingFigures.BytesPerHandler = m.waitingFigures.BytesPerHandler.minus(rest).over(m.objects)
	return err
}

// settledTally waits until the condition is true.
func (m *measurement) settledTally(ctx context.Context, condition func(tallied) bool) (now sample, err error) {
	for {
		if now, err = m.operator.ask(commandSample); err != nil || condition(now.Tallied) {
			return now, err
		}
		if err := pause(ctx, quietStep); err != nil {
			return now, err
		}
	}
}

// printWaiting prints the figures of operators whose handlers wait, and the goals.
func (r report) printWaiting(out io.Writer) {
	for _, f := range r.Waiting {
		_, _ = fmt.Fprintf(out, "\n%s:\n  %d objects whose handlers wait %s: all are handled %.1f s after the last creation (goal: %s)\n",
			f.Description, f.Wave.Objects, f.Wave.Wait, f.Wave.AfterLast.Seconds(), goalAfterLast)
		if f.Handlers == 0 {
			continue
		}
		_, _ = fmt.Fprintf(out, "  %d waiting handlers: %d B each (goal: %d), of which Go heap: %d B\n",
			f.Handlers, f.BytesPerHandler.Resident, goalHandler, f.BytesPerHandler.Heap)
		_, _ = fmt.Fprintf(out, "  a change of another resource is handled after:\n    idle: %s\n    while they wait: %s (goal: twice the p99)\n    while they finish, in %.1f s: %s\n",
			f.Idle, f.Waiting, f.Finished.Seconds(), f.Finishing)
		f.Initial.print(out)
	}
}
