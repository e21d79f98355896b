package handler_test

import (
	"sync"
	"testing"

	"github.com/kopf-go/kopf/pkg/model/handler"
)

func TestStopReasonsAreASet(t *testing.T) {
	tests := map[string]struct {
		reason handler.StopReason
		want   string
	}{
		"none":      {0, ""},
		"one":       {handler.StopPaused, "paused"},
		"several":   {handler.StopCancelled | handler.StopDeleted, "deleted|cancelled"},
		"all of it": {0x7f, "deleted|mismatch|paused|exiting|signalled|cancelled|abandoned"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := test.reason.String(); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
	both := handler.StopDeleted | handler.StopSignalled
	if !both.Has(handler.StopDeleted) || !both.Has(both) || both.Has(handler.StopDeleted|handler.StopExiting) || both.Has(handler.StopPaused) {
		t.Errorf("%s has something else", both)
	}
}

func closed(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}

func TestAStopperAddsReasons(t *testing.T) {
	for name, stopper := range map[string]*handler.Stopper{"new": handler.NewStopper(), "zero": {}} {
		t.Run(name, func(t *testing.T) {
			done := stopper.Done()
			if closed(done) || stopper.Reason() != 0 {
				t.Errorf("it has stopped: %s", stopper.Reason())
			}
			stopper.Stop(handler.StopMismatch)
			stopper.Stop(handler.StopMismatch)
			stopper.Stop(handler.StopCancelled)
			if !closed(done) || !closed(stopper.Done()) || stopper.Reason() != handler.StopMismatch|handler.StopCancelled {
				t.Errorf("got %s", stopper.Reason())
			}
		})
	}
}

func TestManyStopAtOnce(t *testing.T) {
	var stopper handler.Stopper
	var all sync.WaitGroup
	for bit := range 7 {
		for range 10 {
			all.Go(func() { <-stopper.Done() })
			all.Go(func() { stopper.Stop(1 << bit) })
		}
	}
	all.Wait()
	if stopper.Reason() != 0x7f {
		t.Errorf("got %s", stopper.Reason())
	}
}
