package call

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// order runs passes that arrive one after another while the only permit is taken, and
// returns the order in which they get it.
func order(arrivals ...string) (got []string) {
	p := NewPermits(1)
	p.Begin("a", nil)
	var mu sync.Mutex
	for _, arrival := range arrivals {
		resource, finishes := strings.CutSuffix(arrival, "!")
		go func() {
			if finishes {
				p.Continue(resource)
			} else {
				p.Begin(resource, nil)
			}
			mu.Lock()
			got = append(got, arrival)
			mu.Unlock()
			p.Release()
		}()
		synctest.Wait()
	}
	p.Release()
	synctest.Wait()
	return got
}

func TestPermitsAreHandedOutInTurns(t *testing.T) {
	tests := map[string]struct{ arrivals, want []string }{
		"in the order of arrival":            {[]string{"a", "a", "a!", "a!"}, []string{"a!", "a!", "a", "a"}},
		"resources take turns":               {[]string{"a", "a", "a", "b", "c"}, []string{"a", "b", "c", "a", "a"}},
		"the workers get some back":          {[]string{"a!", "a!", "a!", "a!", "a!", "a!", "a", "a"}, []string{"a!", "a!", "a!", "a!", "a", "a!", "a!", "a"}},
		"also while one of them is finished": {[]string{"a!", "a!", "a!", "b", "b!"}, []string{"a!", "b!", "a!", "b", "a!"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				if got := order(test.arrivals...); !slices.Equal(got, test.want) {
					t.Errorf("got %v, want %v", got, test.want)
				}
			})
		})
	}
}

func TestNoMorePassesWorkThanThereArePermits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const permits, passes = 3, 50
		p := NewPermits(permits)
		var mu sync.Mutex
		var working, most int
		for range passes {
			go func() {
				p.Begin("a", nil)
				defer p.Release()
				mu.Lock()
				working++
				most = max(most, working)
				mu.Unlock()
				time.Sleep(time.Second)
				mu.Lock()
				working--
				mu.Unlock()
			}()
		}
		synctest.Wait()
		if got := p.Waiting(); got != passes-permits {
			t.Errorf("%d passes wait", got)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if most != permits || p.free != permits || p.Waiting() != 0 {
			t.Errorf("%d passes worked at the same time; then %d permits were free", most, p.free)
		}
	})
}

// The code of users, such as a filter, may never return. It must not hold back what others have done.
func TestPassesThatFinishDoNotWaitForStuckOnes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPermits(2)
		stuck := make(chan struct{})
		for range 2 {
			p.Begin("slow", nil)
		}
		go func() {
			p.Begin("slow", nil)
			<-stuck
			p.Release()
		}()
		began := time.Now()
		var mu sync.Mutex
		var took []time.Duration
		for range 100 {
			go func() {
				p.Continue("quick")
				time.Sleep(time.Millisecond)
				mu.Lock()
				took = append(took, time.Since(began))
				mu.Unlock()
				p.Release()
			}()
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if len(took) != 100 || slices.Max(took) > 4*patience {
			t.Errorf("%d have finished: %v", len(took), took)
		}
		close(stuck)
		synctest.Wait()
		p.Release()
		p.Release()
		synctest.Wait() // the third pass begins, and ends
		if p.free != 2 || p.Waiting() != 0 {
			t.Errorf("%d permits are free in the end, %d wait", p.free, p.Waiting())
		}
	})
}

// A pass that waits to begin can be stopped, and takes no permit with it.
func TestPassThatBeginsCanBeStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, stop := NewPermits(1), make(chan struct{})
		p.Begin("a", nil)
		began := make(chan bool, 1)
		go func() { began <- p.Begin("a", stop) }()
		synctest.Wait()
		close(stop)
		if <-began || p.Waiting() != 0 {
			t.Errorf("%d passes wait", p.Waiting())
		}
		p.Release()
		if p.free != 1 || !p.Begin("a", stop) {
			t.Errorf("%d permits are free", p.free)
		}
	})
}

// Passes that begin get no permits that were added for those that finish: they could keep them, too.
func TestPassesThatBeginDoNotTakeAddedPermits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPermits(1)
		p.Begin("stuck", nil)
		stop := make(chan struct{})
		begun := 0
		for range 10 {
			go func() {
				if p.Begin("stuck", stop) {
					begun++
				}
			}()
		}
		synctest.Wait()
		began := time.Now()
		for range 10 {
			p.Continue("quick")
			p.Release()
		}
		if took := time.Since(began); begun != 0 || took > 20*patience {
			t.Errorf("%d passes have begun, and those that finish took %s", begun, took)
		}
		close(stop)
	})
}
