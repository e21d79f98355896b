package record

import (
	"context"
	"errors"
	"testing"

	"github.com/kopf-go/kopf/pkg/model/cause"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/storage"
)

// countdown makes one call of a storage fail.
type countdown int

func (c *countdown) call() error {
	if *c--; *c == 0 {
		return errDown
	}
	return nil
}

// failingBase and failingProgress are the storages with the countdown.
type failingBase struct {
	storage.DiffBase
	storage.CycleBase

	left *countdown
}

func (b failingBase) Fetch(ctx context.Context, body *object.Body) (object.Essence, error) {
	essence, err := b.DiffBase.Fetch(ctx, body)
	return essence, errors.Join(b.left.call(), err)
}

func (b failingBase) Store(ctx context.Context, body *object.Body, into storage.Patch, essence object.Essence) error {
	return errors.Join(b.left.call(), b.DiffBase.Store(ctx, body, into, essence))
}

func (b failingBase) FetchCycle(ctx context.Context, body *object.Body) (*storage.Cycle, error) {
	kept, err := b.CycleBase.FetchCycle(ctx, body)
	return kept, errors.Join(b.left.call(), err)
}

func (b failingBase) StoreCycle(ctx context.Context, body *object.Body, into storage.Patch, c *storage.Cycle) error {
	return errors.Join(b.left.call(), b.CycleBase.StoreCycle(ctx, body, into, c))
}

func (b failingBase) PurgeCycle(ctx context.Context, body *object.Body, into storage.Patch) error {
	return errors.Join(b.left.call(), b.CycleBase.PurgeCycle(ctx, body, into))
}

type failingProgress struct {
	storage.Progress

	left *countdown
}

func (p failingProgress) Fetch(ctx context.Context, body *object.Body, id string) (*storage.Record, error) {
	r, err := p.Progress.Fetch(ctx, body, id)
	return r, errors.Join(p.left.call(), err)
}

func (p failingProgress) Store(ctx context.Context, body *object.Body, into storage.Patch, id string, r *storage.Record) error {
	return errors.Join(p.left.call(), p.Progress.Store(ctx, body, into, id, r))
}

func (p failingProgress) Purge(ctx context.Context, body *object.Body, into storage.Patch, id string) error {
	return errors.Join(p.left.call(), p.Progress.Purge(ctx, body, into, id))
}

func (p failingProgress) StoresInStatus() bool {
	in, ok := p.Progress.(storage.InStatus)
	return ok && in.StoresInStatus()
}

// open returns an object on which a has ended at 1, and b at 2; c is retried at 3.
func open(t *testing.T) (*fixture, *Cycle) {
	f := newFixture(t)
	for size, id := range []string{"a", "b"} {
		f.resize(int64(size + 1))
		c := f.cycle(cause.Create, "a", "b", "c")
		c.Progress.Fail(id, errDown)
		f.store(c)
	}
	f.resize(3)
	c := f.cycle(cause.Create, "a", "b", "c")
	return f, c
}

func TestEveryErrorOfAStorageIsReturned(t *testing.T) {
	tests := map[string]struct {
		calls int // of the storage
		do    func(f *fixture, c *Cycle) error
	}{
		"Read": {5, (*fixture).reopen},
		"Store": {6, func(f *fixture, c *Cycle) error {
			return f.Store(f.t.Context(), c, f.body, storage.Patch{}, f.report, overtakenAre())
		}},
		"End, with a next cycle": {12, func(f *fixture, c *Cycle) error {
			return f.End(f.t.Context(), c, f.body, storage.Patch{}, f.report)
		}},
		"End, without a next cycle": {12, func(f *fixture, c *Cycle) error {
			c.IsDue = func(string, object.Essence, object.Essence) bool { return false }
			return f.End(f.t.Context(), c, f.body, storage.Patch{}, f.report)
		}},
		"Store, of a deletion": {6, func(f *fixture, c *Cycle) error {
			c.Reason = cause.Delete
			return f.Store(f.t.Context(), c, f.body, storage.Patch{}, f.report, overtakenAre())
		}},
		"Continues": {3, func(f *fixture, c *Cycle) error {
			continues, err := f.Continues(f.t.Context(), c, f.body, f.report)
			if continues == (err != nil) {
				f.t.Errorf("got %v with the error %v", continues, err)
			}
			return err
		}},
		"EndedAt": {1, func(f *fixture, c *Cycle) error {
			_, err := f.EndedAt(f.t.Context(), c, f.body, f.report)
			return err
		}},
		"LastRun": {1, func(f *fixture, _ *Cycle) error {
			_, err := f.LastRun(f.t.Context(), f.body, "a", f.report)
			return err
		}},
		"Purge": {7, func(f *fixture, c *Cycle) error { return f.Purge(f.t.Context(), c, f.body, storage.Patch{}) }},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			calls := failEachCall(t, func() (*fixture, *Cycle) {
				f, c := open(t)
				c.Progress.Fail("c", errDown)
				return f, c
			}, test.do)
			if calls != test.calls {
				t.Errorf("got %d calls", calls)
			}
		})
	}
}

// failEachCall repeats something, and each time makes another call of a storage fail. It returns
// the number of calls.
func failEachCall(t *testing.T, begin func() (*fixture, *Cycle), do func(f *fixture, c *Cycle) error) (calls int) {
	t.Helper()
	for ; ; calls++ {
		f, c := begin()
		cycles, ok := f.Storages.DiffBase.(storage.CycleBase)
		if !ok {
			t.Fatal("the storage has no cycles")
		}
		left := new(countdown(calls + 1))
		f.Storages.DiffBase = failingBase{f.Storages.DiffBase, cycles, left}
		f.Storages.Progress = failingProgress{f.Storages.Progress, left}
		err := do(f, c)
		if *left > 0 && err == nil {
			return calls
		}
		if !errors.Is(err, errDown) {
			t.Fatalf("call %d: got %v", calls+1, err)
		}
	}
}

// plainBase is a storage of a user, which knows neither cycles nor hashes.
type plainBase struct{ storage.DiffBase }

// plainProgress is one that lists no records.
type plainProgress struct{ storage.Progress }

func TestStoragesNeedNotKnowCycles(t *testing.T) {
	f := newFixture(t)
	f.Storages.DiffBase, f.Storages.Progress = plainBase{f.Storages.DiffBase}, plainProgress{f.Storages.Progress}
	c := f.cycle(cause.Create, "a", "b")
	c.Progress.Fail("a", errDown)
	f.store(c)
	if kept := f.kept(c); kept != nil {
		t.Errorf("got %+v", kept)
	}
	into := storage.Patch{}
	f.PurgeTouch(f.body, into)
	if unknown, _ := f.Unknown(t.Context(), f.body, c.Progress.IDs()); len(into) > 0 || unknown != nil {
		t.Errorf("got %v, %q", into, unknown)
	}
	c.Progress.Fail("b", errDown)
	f.end(c)
	base, _, err := f.Base(t.Context(), f.body, f.report)
	f.must(err)
	if size(base) != int64(1) || len(f.progress("a", "b").Stored().IDs()) > 0 {
		t.Errorf("got %v", base)
	}
}

// strictProgress is one that expects an essence.
type strictProgress struct {
	storage.Progress

	t *testing.T
}

func (p strictProgress) Clear(essence object.Essence) object.Essence {
	if essence == nil {
		p.t.Error("there is no essence")
	}
	return p.Progress.Clear(essence)
}

func TestNoRecordsAreRemovedFromNoEssence(t *testing.T) {
	f := newFixture(t)
	f.Storages.Progress = strictProgress{f.Storages.Progress, t}
	f.cycle(cause.Create)
}

func TestTouchOfKopfIsRemoved(t *testing.T) {
	f := newFixture(t)
	f.change(m{"metadata": m{"annotations": m{"kopf.zalando.org/touch-dummy": "2020-01-01T00:00:00"}}})
	into := storage.Patch{}
	f.PurgeTouch(f.body, into)
	if value, has := annotations(into)["kopf.zalando.org/touch-dummy"]; !has || value != nil {
		t.Errorf("got %v", into)
	}
}

// A deletion has positions of an update that did not end, and a resumption has none.
func TestOnlyChangesAreReopened(t *testing.T) {
	for reason, want := range map[cause.Reason]bool{cause.Create: true, cause.Resume: false, cause.Delete: false} {
		f, _ := open(t)
		c := &Cycle{Reason: reason, Progress: f.progress("a", "b", "c")}
		if kept := f.kept(c); (kept != nil) != want {
			t.Errorf("%s: got %+v", reason, kept)
		}
		f.must(f.reopen(c))
	}
}

// A handler that is ahead of the open cycle is not called in it, but in a deletion, or for what happens at a start.
func TestOnlyTheOpenCycleHasHandlersThatAreAhead(t *testing.T) {
	for reason, want := range map[cause.Reason]bool{cause.Update: true, cause.Create: false, cause.Resume: false, cause.Delete: false} {
		f := newFixture(t)
		f.put("a", storage.Record{Purpose: cause.Update, Success: true, Cycle: "7"})
		f.put("deleted", storage.Record{Purpose: cause.Delete, Retries: 1})
		f.put("resumed", storage.Record{Purpose: cause.Resume, Retries: 1})
		f.apply(func(into storage.Patch) error {
			later := object.Essence{"spec": m{"size": int64(2)}}
			return f.cycles().StoreCycle(t.Context(), f.body, into, &storage.Cycle{Token: "7", First: f.Essence(f.body, nil), States: []object.Essence{later}, At: map[string]int{"b": 0}})
		})
		stored, err := f.Read(t.Context(), f.body, []string{"a", "b", "deleted", "resumed"}, nil, f.report)
		f.must(err)
		if stored.Open == nil || stored.New == nil || stored.Base != nil {
			t.Fatalf("got %+v", stored)
		}
		c := &Cycle{Reason: reason, Progress: stored.Progress}
		c.Reopen(stored)
		if got := c.Progress.Load("b").Finished(); got != want {
			t.Errorf("%s: b has ended: %t", reason, got)
		}
	}
}

func TestSettledIsACycleThatLeavesNothingToHandle(t *testing.T) {
	tests := map[string]struct {
		do   func(f *fixture) *Cycle
		want bool
	}{
		"one state": {func(f *fixture) *Cycle { return f.cycle(cause.Create, "a") }, true},
		"a next cycle": {func(f *fixture) *Cycle {
			c := f.replaced(open(f.t))
			c.Progress.Fail("c", errDown)
			return c
		}, false},
		"a later state": {func(f *fixture) *Cycle {
			first := f.cycle(cause.Create, "a", "b")
			first.Progress.Fail("a", errDown)
			f.store(first)
			f.resize(2)
			return f.cycle(cause.Create, "a", "b")
		}, false},
		"an earlier state, while a handler is ahead": {func(f *fixture) *Cycle {
			c := f.replaced(open(f.t))
			f.resize(1)
			c.New = f.Essence(f.body, nil)
			c.Progress.Fail("c", errDown)
			return c
		}, false},
		"a handler that must see the change from the first state": {func(f *fixture) *Cycle {
			first := f.cycle(cause.Create, "a", "b")
			first.Progress.Fail("a", errDown)
			f.store(first)
			f.resize(2)
			c := f.cycle(cause.Create, "a", "b")
			c.IsDue = func(id string, before, _ object.Essence) bool { return id == "b" && before != nil }
			return c
		}, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			c := test.do(f)
			f.end(c)
			if c.Settled != test.want {
				t.Errorf("got %v", c.Settled)
			}
		})
	}
}

// replaced makes the object of another fixture that of this one.
func (f *fixture) replaced(other *fixture, c *Cycle) *Cycle {
	f.body, f.version = other.body, other.version
	return c
}

func TestUnknownRecords(t *testing.T) {
	f := newFixture(t)
	f.put("a", storage.Record{Started: hourAgo(), Purpose: cause.Create})
	f.put("b", storage.Record{Started: hourAgo(), Purpose: cause.Create})
	if got, _ := f.Unknown(t.Context(), f.body, f.progress("a").IDs()); len(got) != 1 || got[0] != "b" {
		t.Errorf("got %q", got)
	}
}

func TestReviseHandlerTakesTheSuccessesBackThatAreNone(t *testing.T) {
	f := newFixture(t)
	c := f.cycle(cause.Create, "a", "a/b", "c")
	c.Progress.Load("a").Subrefs = []string{"a/b"}
	for _, id := range []string{"a", "a/b", "c"} {
		c.Progress.Revise(id, succeeded)
	}
	c.Unreported = []string{"a", "a/b", "c"}
	retried := succeeded
	retried.Final, retried.Err = false, errDown
	if !c.ReviseHandler("a/b", retried) || c.ReviseHandler("event handler", retried) || (*Cycle)(nil).ReviseHandler("a", retried) {
		t.Error("it revises a handler that the cycle does not have, or none")
	}
	if len(c.Unreported) != 1 || c.Unreported[0] != "c" || c.Progress.Load("a/b").Finished() {
		t.Errorf("got %q, %+v", c.Unreported, c.Progress.Load("a/b").Record)
	}
	final := succeeded
	final.Err = errDown
	c.ReviseHandler("c", final)
	if len(c.Unreported) != 0 || !c.Progress.Load("c").Failure {
		t.Errorf("got %q, %+v", c.Unreported, c.Progress.Load("c").Record)
	}
}

// opaque is a value of which only a hash is stored.
type opaque struct{ Hash int }

func (o opaque) EqualTo(value any) bool { return o == value }

func TestPackedEssencesAreRestored(t *testing.T) {
	for name, base := range map[string]object.Essence{
		"never handled":    nil,
		"an essence":       {"spec": m{"size": int64(7)}},
		"with our records": {"spec": m{"size": int64(7)}, "metadata": m{"annotations": m{"kopf.zalando.org/fn": "{}"}}},
		"hashes":           {"spec": m{"size": opaque{1}}},
		"not JSON":         {"spec": make(chan int)},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			c := &Cycle{Base: base, Old: f.clear(base), New: f.Essence(f.body, nil)}
			want := *c
			packed := f.Pack(c, f.body, nil)
			c.Release()
			if c.Base != nil || c.Old != nil || c.New != nil {
				t.Errorf("got %+v", c)
			}
			packed.Restore(c)
			if name != "not JSON" && name != "hashes" && packed.unpacked != nil {
				t.Error("it is not packed")
			}
			if name == "not JSON" {
				want.Base, c.Base, want.Old, c.Old = object.Essence{"n": int64(len(want.Base))}, object.Essence{"n": int64(len(c.Base))}, nil, nil
			}
			if !object.Equal(c.Base, want.Base) || !object.Equal(c.Old, want.Old) || !object.Equal(c.New, want.New) {
				t.Errorf("got %+v, want %+v", c, want)
			}
		})
	}
}
