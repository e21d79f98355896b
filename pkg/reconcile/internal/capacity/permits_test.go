package capacity

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
	p.Begin("a")
	var mu sync.Mutex
	for _, arrival := range arrivals {
		resource, finishes := strings.CutSuffix(arrival, "!")
		go func() {
			if finishes {
				p.Continue(resource)
			} else {
				p.Begin(resource)
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
				p.Begin("a")
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
			p.Begin("slow")
		}
		go func() {
			p.Begin("slow")
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
		if p.free != 2 || p.Waiting() != 0 {
			t.Errorf("%d permits are free in the end, %d wait", p.free, p.Waiting())
		}
	})
}
