package sweep

import (
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// Later runs that take less time begin earlier, and are reported later.
func TestRunsOverlapInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var now, most atomic.Int32
		var reported []int
		begin := time.Now()
		Each(10, 3, func(number int, finish func()) {
			if running := now.Add(1); running > most.Load() {
				most.Store(running)
			}
			time.Sleep(time.Duration(10-number) * time.Second)
			now.Add(-1)
			if number%2 == 0 { // the other ones return without it
				finish()
			}
		}, func(number int) bool {
			reported = append(reported, number)
			return true
		})
		if want := []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}; !slices.Equal(reported, want) {
			t.Errorf("reported in the order %v", reported)
		}
		if took := time.Since(begin); most.Load() != 3 || took >= 30*time.Second {
			t.Errorf("at most %d at the same time, in %v", most.Load(), took)
		}
	})
}

// What has begun is finished when the others are left out.
func TestNoRunBeginsAfterTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var began []int
		Each(10, 1, func(number int, _ func()) { began = append(began, number) }, func(number int) bool { return number < 3 })
		if !slices.Equal(began, []int{0, 1, 2, 3}) && !slices.Equal(began, []int{0, 1, 2, 3, 4}) {
			t.Errorf("began: %v", began)
		}
	})
}
