package virtual

import (
	"context"
	"errors"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/kopftest"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/storage"
)

var errStorage = errors.New("the storage is down")

// unreliable is a storage of which a part can fail. It is safe for concurrent use.
type unreliable struct {
	panics bool

	mu     sync.Mutex
	broken string
	reads  int // of open cycles
}

// breaks lets a part fail, or none.
func (s *unreliable) breaks(part string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.broken = part
}

// countReads returns the number of reads of open cycles since the last call.
func (s *unreliable) countReads() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	count := s.reads
	s.reads = 0
	return count
}

func (s *unreliable) read(part string) error {
	s.mu.Lock()
	broken := s.broken
	if part == "the open cycle" {
		s.reads++
	}
	s.mu.Unlock()
	switch {
	case broken != part:
		return nil
	case s.panics:
		panic("oops")
	default:
		return errStorage
	}
}

// bases is the part of it for the diff base and the open cycle.
type bases struct {
	storage.DiffBase
	storage.CycleBase

	of *unreliable
}

func (b bases) Fetch(ctx context.Context, body *object.Body) (object.Essence, error) {
	if err := b.of.read("the base"); err != nil {
		return nil, err
	}
	return b.DiffBase.Fetch(ctx, body)
}

func (b bases) FetchCycle(ctx context.Context, body *object.Body) (*storage.Cycle, error) {
	if err := b.of.read("the open cycle"); err != nil {
		return nil, err
	}
	return b.CycleBase.FetchCycle(ctx, body)
}

// progress is the part of it for the records.
type progress struct {
	storage.Progress

	of *unreliable
}

func (p progress) Fetch(ctx context.Context, body *object.Body, id string) (*storage.Record, error) {
	if err := p.of.read("the records"); err != nil {
		return nil, err
	}
	return p.Progress.Fetch(ctx, body, id)
}

// option lets an operator use the storage.
func (s *unreliable) option() kopftest.Option {
	return kopftest.Settings(func(settings *kopf.Settings) {
		settings.Persistence.DiffBase = bases{storage.AnnotationsDiffBase{}, storage.AnnotationsDiffBase{}, s}
		settings.Persistence.Progress = progress{storage.AnnotationsProgress{}, s}
	})
}

// Only the stored state shows what has happened: without it, no handler is called, and nothing is written.
func TestNothingHappensToAnObjectWhoseStateCannotBeRead(t *testing.T) {
	for _, part := range []string{"the base", "the records", "the open cycle"} {
		for how, panics := range map[string]bool{"an error": false, "a panic": true} {
			t.Run(part+"/"+how, func(t *testing.T) {
				s := &unreliable{panics: panics}
				withOperator(t, func(r *kopf.Registry) {
					r.OnUpdate(examples, once, kopf.ID("update"))
				}, func(t *testing.T, h *kopftest.Harness) {
					one := newExample()
					h.Create(one)
					h.Settle()
					h.Patch(one, `{"spec": {"size": 4}}`) // an open cycle
					h.Advance(time.Minute)
					s.breaks(part)
					calls, writes := len(h.Calls("update")), len(h.Writes())
					h.Advance(2 * time.Hour)
					if more := h.Writes()[writes:]; len(h.Calls("update")) != calls || len(more) > 0 {
						t.Errorf("got %v and the writes %v", h.Calls("update"), more)
					}
					if len(messages(h, "ReconcileError")) == 0 {
						t.Error("the error is not reported")
					}
					s.breaks("")
					h.Advance(2 * time.Hour)
					if got := h.Calls("update"); len(got) != 2 || got[1].Err != nil {
						t.Errorf("afterwards: %v", got)
					}
				}, s.option())
			})
		}
	}
}

// Without handlers of changes, nothing is stored.
func TestTimersNeedNoStorage(t *testing.T) {
	s := &unreliable{broken: "the base"}
	withOperator(t, func(r *kopf.Registry) {
		r.Timer(examples, func(context.Context, *kopf.Tick) error { return nil }, kopf.ID("timer"), kopf.Interval(time.Hour))
	}, func(t *testing.T, h *kopftest.Harness) {
		h.Create(newExample())
		h.Advance(90 * time.Minute)
		if got := h.Calls("timer"); len(got) != 2 {
			t.Errorf("got %v", got)
		}
	}, s.option())
}

// Most changes have no open cycle yet, so it is not read before the first call.
func TestOnlyOpenCyclesAreRead(t *testing.T) {
	s := &unreliable{}
	before := -1
	withOperator(t, func(r *kopf.Registry) {
		r.OnUpdate(examples, func(context.Context, *kopf.Change) error { before = s.countReads(); return nil }, kopf.ID("update"))
	}, func(t *testing.T, h *kopftest.Harness) {
		one := newExample()
		h.Create(one)
		h.Settle()
		s.countReads()
		h.Patch(one, `{"spec": {"size": 4}}`)
		h.Advance(time.Hour)
		if before != 0 {
			t.Errorf("got %d reads", before)
		}
	}, s.option())
}

// strangeBase is a storage with an essence that is not JSON.
type strangeBase struct{ storage.DiffBase }

func (strangeBase) Build(*object.Body, []object.Path) object.Essence {
	return object.Essence{"spec": map[string]any{"x": math.NaN()}}
}

func TestEssenceThatCannotBeComparedIsAnError(t *testing.T) {
	withOperator(t, func(r *kopf.Registry) {
		r.Timer(examples, func(context.Context, *kopf.Tick) error { return nil }, kopf.ID("timer"), kopf.Interval(time.Hour), kopf.Idle(time.Minute))
	}, func(t *testing.T, h *kopftest.Harness) {
		h.Create(newExample())
		h.Advance(time.Hour)
		if got := messages(h, "ReconcileError"); len(got) != 1 {
			t.Errorf("got the events %q", got)
		}
	}, kopftest.Settings(func(s *kopf.Settings) { s.Persistence.DiffBase = strangeBase{storage.AnnotationsDiffBase{}} }))
}
