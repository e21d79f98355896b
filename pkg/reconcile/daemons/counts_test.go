package daemons_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kopf-go/kopf/pkg/model/handler"
	"github.com/kopf-go/kopf/pkg/reconcile/daemons"
)

func TestDaemonsAndTimersAreCounted(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		expect := func(when string, running, waiting daemons.Counts) {
			t.Helper()
			synctest.Wait()
			if d, m := w.supervisor.Count(handler.OnDaemon), w.supervisor.Count(handler.OnTimer); d != running || m != waiting {
				t.Errorf("%s: got daemons %+v, timers %+v", when, d, m)
			}
		}
		stubborn := w.daemon("stubborn", w.deaf(time.Minute), handler.CancellationTimeout(time.Second))
		patient := w.daemon("patient", w.polite, handler.InitialDelay(2*time.Second))
		timer := w.timer("timer", func(context.Context, *handler.Tick) error { return nil }, handler.Interval(time.Hour))
		expect("at first", daemons.Counts{}, daemons.Counts{})
		w.match(stubborn, patient, timer)
		w.until(1)
		expect("one runs", daemons.Counts{Running: 1, Waiting: 1}, daemons.Counts{Waiting: 1})
		w.until(3)
		expect("both run", daemons.Counts{Running: 2}, daemons.Counts{Waiting: 1})
		w.match()
		expect("they are to stop", daemons.Counts{Running: 1}, daemons.Counts{})
		w.until(10)
		expect("one is abandoned", daemons.Counts{Abandoned: 1}, daemons.Counts{})
		w.until(100)
		expect("both have returned", daemons.Counts{}, daemons.Counts{})
	})
}
