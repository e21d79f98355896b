package undeclared

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
)

// newHandlers returns the handlers, and a function that returns the logged values.
func newHandlers() (*Handlers, func() []string) {
	var mu sync.Mutex
	var lines []string
	logger := funcr.New(func(_, line string) {
		mu.Lock()
		defer mu.Unlock()
		_, values, _ := strings.Cut(line, `"resource"=`)
		lines = append(lines, values)
	}, funcr.Options{})
	return &Handlers{Logger: logger}, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(lines)
	}
}

func TestEachHandlerIsReportedOnceWithItsObjects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, lines := newHandlers()
		h.Note("pods.v1", nil)
		h.Note("pods.v1", []string{"b", "a"})
		time.Sleep(reportDelay - time.Second)
		h.Note("pods.v1", []string{"b"})
		h.Note("nodes.v1", []string{"b"})
		if got := lines(); len(got) > 0 {
			t.Errorf("too early: %q", got)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		want := []string{`"nodes.v1" "handler"="b" "objects"=1`, `"pods.v1" "handler"="a" "objects"=1`, `"pods.v1" "handler"="b" "objects"=2`}
		if got := lines(); !slices.Equal(got, want) {
			t.Errorf("got %q", got)
		}
		h.Note("pods.v1", []string{"a"}) // known
		h.Note("pods.v1", []string{"c"})
		time.Sleep(time.Hour)
		synctest.Wait()
		if got := lines()[len(want):]; !slices.Equal(got, []string{`"pods.v1" "handler"="c" "objects"=1`}) {
			t.Errorf("got %q", got)
		}
	})
}

func TestThereIsNoReportAfterTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, lines := newHandlers()
		h.Stop()
		h.Note("pods.v1", []string{"a"})
		h.Stop()
		time.Sleep(time.Hour)
		synctest.Wait()
		if got := lines(); len(got) > 0 {
			t.Errorf("got %q", got)
		}
	})
}
