package call

import (
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// expectFree expects that the only permit is free, and that no pass waits.
func (p *Permits) expectFree(t *testing.T) {
	t.Helper()
	synctest.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.free != 1 || p.waiting != 0 {
		t.Errorf("%d permits are free, and %d passes wait", p.free, p.waiting)
	}
}

// Calls that take long hold no others back, however many there are.
func TestLongCallsLendTheirPermits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPermits(1)
		const slow = 10
		var lent atomic.Int32
		for range slow {
			p.Begin("a", nil)
			ctx := p.With(t.Context(), "a", func() { lent.Add(1) })
			go func() {
				defer p.Release()
				Lend(ctx, func() { time.Sleep(time.Hour) })
				Lend(ctx, func() { time.Sleep(time.Hour) })
			}()
		}
		began := time.Now()
		p.Begin("b", nil)
		if took := time.Since(began); took > lendAfter || lent.Load() != slow {
			t.Errorf("waited for %v, and %d permits were lent", took, lent.Load())
		}
		p.Release()
		time.Sleep(3 * time.Hour)
		p.expectFree(t)
	})
}

func TestShortCallsKeepTheirPermits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPermits(1)
		p.Begin("a", nil)
		ctx := p.With(t.Context(), "a", func() { t.Error("the permit is lent") })
		for range 10 {
			Lend(ctx, func() { time.Sleep(lendAfter / 2) })
		}
		p.Release()
		time.Sleep(time.Hour)
		p.expectFree(t)
	})
}

func TestCallsThatDoNotReturnAsUsualTakeTheirPermitsBack(t *testing.T) {
	for name, end := range map[string]func(){"a panic": func() { panic("oops") }, "the end of the goroutine": runtime.Goexit} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := NewPermits(1)
				p.Begin("a", nil)
				ctx := p.With(t.Context(), "a", func() {})
				go func() {
					defer p.Release()
					defer func() { _ = recover() }()
					Lend(ctx, func() {
						time.Sleep(time.Hour)
						end()
					})
				}()
				time.Sleep(2 * time.Hour)
				p.expectFree(t)
			})
		})
	}
}

func TestCallsWithoutAPermitAreMade(t *testing.T) {
	called := false
	Lend(t.Context(), func() { called = true })
	if !called {
		t.Error("the call is not made")
	}
}
