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
		h.Add("pods.v1", nil, nil)
		h.Add("pods.v1", []string{"b", "a"}, nil)
		time.Sleep(reportDelay - time.Second)
		h.Add("pods.v1", []string{"b"}, nil)
		h.Add("nodes.v1", []string{"b"}, nil)
		if got := lines(); len(got) > 0 {
			t.Errorf("too early: %q", got)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		want := []string{`"nodes.v1" "record"="b" "objects"=1`, `"pods.v1" "record"="a" "objects"=1`, `"pods.v1" "record"="b" "objects"=2`}
		if got := lines(); !slices.Equal(got, want) {
			t.Errorf("got %q", got)
		}
		h.Add("pods.v1", []string{"a"}, nil) // known
		h.Add("pods.v1", []string{"c"}, nil)
		time.Sleep(time.Hour)
		synctest.Wait()
		if got := lines()[len(want):]; !slices.Equal(got, []string{`"pods.v1" "record"="c" "objects"=1`}) {
			t.Errorf("got %q", got)
		}
	})
}

func TestThereIsNoReportAfterTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, lines := newHandlers()
		h.Stop()
		h.Add("pods.v1", []string{"a"}, nil)
		h.Stop()
		time.Sleep(time.Hour)
		synctest.Wait()
		if got := lines(); len(got) > 0 {
			t.Errorf("got %q", got)
		}
	})
}

func TestFormerIDIsSuggested(t *testing.T) {
	declared := []string{"create", "bill/spec.plan"}
	for name, want := range map[string]string{
		"charge.spec.plan": `Was bill/spec.plan called charge before? Declare it with kopf.ID("charge").`,
		"charge/spec.plan": `Was bill/spec.plan called charge before? Declare it with kopf.ID("charge").`,
		".spec.plan":       "If it was removed, its annotation can be removed, too.",
		"charge":           "If it was removed, its annotation can be removed, too.",
	} {
		if got := Remark(name, declared); got != want {
			t.Errorf("%s: got %q", name, got)
		}
	}
}

func TestReportIsAnErrorWithTheFormerID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lines []string
		h := &Handlers{Logger: funcr.New(func(_, line string) { lines = append(lines, line) }, funcr.Options{})}
		h.Add("pods.v1", []string{"charge.spec.plan"}, []string{"bill/spec.plan"})
		time.Sleep(reportDelay)
		synctest.Wait()
		if len(lines) != 1 || !strings.Contains(lines[0], "kopf.ID") || !strings.Contains(lines[0], `"error"=null`) {
			t.Errorf("got %q", lines)
		}
	})
}

func TestChildrenAreReportedApartFromProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lines []string
		h := &Handlers{Logger: funcr.New(func(_, line string) { lines = append(lines, line) }, funcr.Options{})}
		for range 3 {
			h.AddChild("Shop.example.com", "former")
			h.AddChild("shops.v1.example.com", "")
		}
		time.Sleep(reportDelay)
		synctest.Wait()
		h.AddChild("Shop.example.com", "former") // known
		time.Sleep(reportDelay)
		synctest.Wait()
		if len(lines) != 2 || !strings.Contains(lines[0], `"parents"="Shop.example.com" "handler"="former" "children"=3`) || !strings.Contains(lines[1], `"resource"="shops.v1.example.com" "objects"=3`) {
			t.Errorf("got %q", lines)
		}
	})
}
