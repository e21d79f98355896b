package main

import (
	"context"
	"fmt"
	"io"
	"time"
)

// Initial is what it took an operator to handle many objects that existed when it started.
type Initial struct {
	Objects int `json:"objects"`
	// Live is the latency of another resource meanwhile.
	Live Latency `json:"live"`
	// Handled is how long it took from the start until all objects were handled.
	Handled time.Duration `json:"handledNanoseconds"`
}

// The goals for objects that exist when the operator starts.
const (
	goalLive    = time.Second      // for the latency of a change
	goalInitial = 60 * time.Second // for the last object, as long as the machine can keep up
)

// startWithObjects measures an operator that starts with many objects to handle, while
// another resource changes all the time.
func (m *measurement) startWithObjects(ctx context.Context) error {
	if err := m.runBurst(ctx, m.deletion(m.objects)); err != nil {
		return err
	}
	if err := m.operator.stop(); err != nil {
		return err
	}
	m.observer.expectHandled(m.initial, firstRevision)
	if err := m.load.each(ctx, m.initial, m.load.create); err != nil {
		return err
	}
	if err := m.probe.open(ctx); err != nil {
		return err
	}
	defer m.probe.watch.Stop()
	began := time.Now()
	if err := m.start(ctx); err != nil {
		return err
	}
	live, err := m.probe.measure(ctx, 1, m.isHandling())
	m.waitingFigures.Initial = Initial{m.initial, live, time.Since(began)}
	return err
}

// isHandling returns a function that reports whether objects are left to be handled.
func (m *measurement) isHandling() func() (bool, error) {
	all := m.observer.done
	return func() (bool, error) {
		select {
		case <-all:
			return false, nil
		default:
			return true, nil
		}
	}
}

func (i Initial) print(out io.Writer) {
	if i.Objects == 0 {
		return
	}
	_, _ = fmt.Fprintf(out, "  after a start with %d objects: all are handled after %.1f s (goal: %s), and meanwhile a change of another resource after: %s (goal: %s)\n",
		i.Objects, i.Handled.Seconds(), goalInitial, i.Live, goalLive)
}
