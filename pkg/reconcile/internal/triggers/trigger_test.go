package triggers_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/triggers"
)

// spreading returns a running Spread with the flags of so many objects, and when each was set.
func spreading(t *testing.T, objects int) (s *triggers.Spread, flags []*triggers.Flag, removals []func(), passes map[int][]time.Duration) {
	s, passes = triggers.NewSpread(), map[int][]time.Duration{}
	began, d := time.Now(), newFixture(t).handler
	for i := range objects {
		flag := triggers.NewFlag(d, func() { passes[i] = append(passes[i], time.Since(began)) })
		key := object.Key{Resource: "pods.v1", NamespacedName: types.NamespacedName{Name: fmt.Sprintf("%05d", i)}}
		flags, removals = append(flags, flag), append(removals, s.Add(key, flag))
	}
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	go s.Run(ctx)
	return s, flags, removals, passes
}

// settle waits for everything that happens meanwhile.
func settle(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// makeCalls makes the pending calls of a flag.
func makeCalls(t *testing.T, flag *triggers.Flag) {
	t.Helper()
	for _, d := range flag.Calls() {
		flag.Begin(d.ID)
		flag.End(d.ID, false)
	}
}

func TestSpreadTakesTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, flags, removals, passes := spreading(t, 4)
		removals[2]()
		s.Set()
		s.Set()
		settle(time.Hour)
		for i, want := range []string{"[0s]", "[10ms]", "[]", "[20ms]"} {
			if got := fmt.Sprint(passes[i]); got != want {
				t.Errorf("the flag %d was set after %s, want %s", i, got, want)
			}
			makeCalls(t, flags[i])
		}
		for range 100 { // for ten seconds
			s.Set()
			settle(100 * time.Millisecond)
			makeCalls(t, flags[0])
		}
		if n := len(passes[0]) - 1; n < 9 || n > 11 {
			t.Errorf("it was set %d times within 10 s", n)
		}
	})
}

func TestSpreadOfManyObjectsIsFaster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _, _, passes := spreading(t, 5000)
		s.Set()
		settle(time.Minute)
		last := time.Duration(0)
		for _, at := range passes {
			last = max(last, slices.Max(at))
		}
		if len(passes) != 5000 || last < 9*time.Second || last > 10*time.Second {
			t.Errorf("%d flags were set, the last one after %s", len(passes), last)
		}
	})
}

func TestWhatSetsAFlagEndsWithIt(t *testing.T) {
	flag := triggers.NewFlag(newFixture(t).handler, func() {})
	flag.Stop()
	var ended []string
	for _, name := range []string{"a child", "an index"} {
		flag.AtStop(func() { ended = append(ended, name) })
	}
	flag.Stop()
	slices.Sort(ended)
	if got := fmt.Sprint(ended); got != "[a child an index]" {
		t.Errorf("got %s", got)
	}
}
