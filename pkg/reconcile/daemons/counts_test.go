package daemons_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/pkg/reconcile/daemons"
)

func TestCounts(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		expect := func(when string, running, waiting daemons.Counts) {
			t.Helper()
			synctest.Wait()
			if d, m := w.supervisor.Count(handler.OnDaemon), w.supervisor.Count(handler.OnTimer); d != running || m != waiting {
				t.Errorf("%s: got daemons %+v, timers %+v", when, d, m)
			}
		}
		ignorant := w.daemon("ignorant", w.ignoringStops(time.Minute), handler.CancellationTimeout(time.Second))
		delayed := w.daemon("delayed", w.untilStopped, handler.InitialDelay(2*time.Second))
		timer := w.timer("timer", func(context.Context, *handler.Call) error { return nil }, handler.Interval(time.Hour))
		expect("in the beginning", daemons.Counts{}, daemons.Counts{})
		w.match(ignorant, delayed, timer)
		w.until(1)
		expect("one runs", daemons.Counts{Running: 1, Waiting: 1}, daemons.Counts{Waiting: 1})
		w.until(3)
		expect("both run", daemons.Counts{Running: 2}, daemons.Counts{Waiting: 1})
		w.match()
		expect("they must stop", daemons.Counts{Running: 1}, daemons.Counts{})
		w.until(10)
		expect("one is abandoned", daemons.Counts{Abandoned: 1}, daemons.Counts{})
		w.until(100)
		expect("both have returned", daemons.Counts{}, daemons.Counts{})
	})
}
