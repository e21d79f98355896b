package record

import (
	"fmt"
	"maps"
	"strconv"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"

	"github.com/kopf-go/kopf/pkg/internal/reportonce"
	"github.com/kopf-go/kopf/pkg/model/cause"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/patch"
	"github.com/kopf-go/kopf/pkg/reconcile/call"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/report"
	"github.com/kopf-go/kopf/pkg/settings"
	"github.com/kopf-go/kopf/pkg/storage"
)

type m = map[string]any

// fixture is one object with its records.
type fixture struct {
	Keeper
	t           *testing.T
	body        *object.Body
	report      report.Reporter
	log, events []string
	version     int
}

func newFixture(t *testing.T) *fixture {
	defaults := settings.Settings{}.WithDefaults()
	f := &fixture{Keeper: Keeper{defaults.Persistence}, t: t, version: 1}
	logger := funcr.New(func(_, args string) { f.log = append(f.log, args) }, funcr.Options{})
	f.report = report.Reporter{Log: logger, Poster: f, Posting: defaults.Posting, Object: &reportonce.Set{}, Shared: &reportonce.SharedSet{}}
	f.body = object.NewBody(m{
		"apiVersion": "kopf.dev/v1", "kind": "KopfExample",
		"metadata": m{"name": "one", "namespace": "ns", "uid": "u-1", "resourceVersion": "1"}, "spec": m{"size": int64(1)},
	})
	return f
}

// Post keeps an event.
func (f *fixture) Post(_ corev1.ObjectReference, eventType, reason, message string) {
	f.events = append(f.events, fmt.Sprintf("%s %s: %s", eventType, reason, message))
}

// must fails the test for an error.
func (f *fixture) must(err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatal(err)
	}
}

// apply applies what the function puts into a patch, and returns the patch.
func (f *fixture) apply(put func(into storage.Patch) error) storage.Patch {
	f.t.Helper()
	into := storage.Patch{}
	f.must(put(into))
	f.change(into)
	return into
}

func (f *fixture) change(merge m) { f.body = object.NewBody(patch.ApplyMerge(f.body.Raw(), merge)) }

// progress reads the progress of handlers.
func (f *fixture) progress(ids ...string) *call.Progress {
	f.t.Helper()
	progress, err := f.Progress(f.t.Context(), f.body, ids, f.report)
	f.must(err)
	return progress
}

// cycle returns a cycle on the current version, with handlers that have not finished. Each
// handler is due if the size has changed.
func (f *fixture) cycle(reason cause.Reason, ids ...string) *Cycle {
	f.t.Helper()
	base, old, err := f.Base(f.t.Context(), f.body, f.report)
	f.must(err)
	c := &Cycle{Reason: reason, Base: base, Old: old, New: f.Essence(f.body, nil), Progress: f.progress(ids...), Declared: ids}
	c.IsDue = func(_ string, before, after object.Essence) bool { return size(before) != size(after) }
	f.must(f.reopen(c))
	for _, id := range ids {
		c.Progress.Include(id, reason, false)
	}
	return c
}

// reopen adds what is stored about a cycle.
func (f *fixture) reopen(c *Cycle) error {
	stored, err := f.Read(f.t.Context(), f.body, c.Progress.IDs(), nil, f.report)
	c.Reopen(stored)
	return err
}

// store stores the progress of a cycle that no other operator has moved on.
func (f *fixture) store(c *Cycle) storage.Patch {
	f.t.Helper()
	return f.apply(func(into storage.Patch) error {
		return f.Store(f.t.Context(), c, f.body, into, f.report, overtakenAre())
	})
}

// end ends a cycle.
func (f *fixture) end(c *Cycle) storage.Patch {
	f.t.Helper()
	return f.apply(func(into storage.Patch) error { return f.End(f.t.Context(), c, f.body, into, f.report) })
}

// kept reads the open cycle.
func (f *fixture) kept(c *Cycle) *storage.Cycle {
	f.t.Helper()
	kept, err := f.keptOn(f.t.Context(), f.body, c, f.report)
	f.must(err)
	return kept
}

// resize changes the object.
func (f *fixture) resize(to int64) {
	f.version++
	f.change(m{"spec": m{"size": to}, "metadata": m{"resourceVersion": strconv.Itoa(f.version)}})
}

// overtakenAre returns a function by which another operator has moved on these records.
func overtakenAre(ids ...string) func(string) (bool, error) {
	return func(id string) (bool, error) {
		for _, overtaken := range ids {
			if id == overtaken {
				return true, nil
			}
		}
		return false, nil
	}
}

// put stores a record as another operator does.
func (f *fixture) put(id string, r storage.Record) {
	f.t.Helper()
	f.apply(func(into storage.Patch) error { return f.Storages.Progress.Store(f.t.Context(), f.body, into, id, &r) })
}

// annotations returns those of a patch; a removed one has no value.
func annotations(into storage.Patch) m {
	value, _ := object.Lookup(m(into), object.Path{"metadata", "annotations"})
	found, _ := value.(m)
	return maps.Clone(found)
}

// size returns the size in an essence.
func size(essence object.Essence) any {
	value, _ := object.Lookup(essence, object.Path{"spec", "size"})
	return value
}

func hourAgo() time.Time { return time.Now().Add(-time.Hour) }
