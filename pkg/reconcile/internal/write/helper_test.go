package write

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-go/kopf/pkg/internal/reportonce"
	"github.com/kopf-go/kopf/pkg/model/cause"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/patch"
	"github.com/kopf-go/kopf/pkg/reconcile/call"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/record"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/report"
	"github.com/kopf-go/kopf/pkg/settings"
	"github.com/kopf-go/kopf/pkg/storage"
)

type m = map[string]any

const (
	ours   = settings.DefaultFinalizer
	theirs = "example.com/other"
)

// fixture is a writer with one object on a server.
type fixture struct {
	*server
	*Session
	events []string
	done   map[string]int // by the id of an edit: how often it was finished
}

// newFixture makes an object with a spec and the metadata, and opens a session on it.
func newFixture(t *testing.T, metadata m) *fixture {
	t.Helper()
	metadata = patch.ApplyMerge(m{"name": "one", "namespace": "ns", "uid": "u-1"}, metadata)
	f := &fixture{server: &server{t: t, version: 6, statusSubresource: true}, done: map[string]int{}}
	f.store(m{"apiVersion": "kopf.dev/v1", "kind": "KopfExample", "metadata": metadata, "spec": m{"size": int64(1)}})
	persistence := settings.Settings{}.WithDefaults().Persistence
	w := New(Config{Records: record.Keeper{Storages: persistence}, ConsistencyTimeout: persistence.ConsistencyTimeout})
	state := &State{}
	state.Reset("u-1")
	f.Session = w.Open(state, Target{
		Key: object.Key{Resource: "kex", NamespacedName: types.NamespacedName{Namespace: "ns", Name: "one"}}, API: f.server, StatusSubresource: true,
	}, f.reporter())
	f.refresh(f.cached())
	return f
}

// deleting is the metadata of an object that is marked for deletion.
func deleting(finalizers ...any) m {
	return m{"deletionTimestamp": "2020-01-01T00:00:00Z", "finalizers": finalizers}
}

func (f *fixture) reporter() report.Reporter {
	return report.Reporter{Log: logr.Discard(), Poster: f, Posting: settings.Settings{}.WithDefaults().Posting, Object: &reportonce.Set{}, Shared: &reportonce.SharedSet{}}
}

// Post keeps an event.
func (f *fixture) Post(_ corev1.ObjectReference, _, reason, message string) {
	f.events = append(f.events, fmt.Sprintf("%s: %s", reason, message))
}

// cached returns the object as a watch shows it now.
func (f *fixture) cached() *object.Snapshot { return f.snapshot(f.object) }

// nextPass opens the session of the next pass; Refresh comes next.
func (f *fixture) nextPass() {
	f.Session = f.writer.Open(f.state, f.target, f.report)
}

// refresh begins a pass that can go on with the version of the watch.
func (f *fixture) refresh(cached *object.Snapshot) {
	f.t.Helper()
	f.nextPass()
	if fresh, err := f.Refresh(f.t.Context(), cached); err != nil || !fresh.Fresh {
		f.t.Fatalf("got %+v, %v", fresh, err)
	}
	f.StartDetection()
}

// write writes an update that must succeed.
func (f *fixture) write(u Update) Outcome {
	f.t.Helper()
	outcome, err := f.Write(f.t.Context(), u)
	if err != nil {
		f.t.Fatal(err)
	}
	return outcome
}

// writeFails writes an update that must fail.
func (f *fixture) writeFails(u Update) error {
	f.t.Helper()
	_, err := f.Write(f.t.Context(), u)
	if err == nil {
		f.t.Fatal("the write must fail")
	}
	return err
}

// flush writes, in a new pass, what the last one could not.
func (f *fixture) flush() Outcome {
	f.t.Helper()
	f.refresh(f.cached())
	outcome, err := f.Flush(f.t.Context())
	if err != nil {
		f.t.Fatal(err)
	}
	return outcome
}

// cycle returns a cycle on the version of the session; its handlers have not finished.
func (f *fixture) cycle(reason cause.Reason, ids ...string) *record.Cycle {
	f.t.Helper()
	records := f.writer.Records
	base, old, err := records.Base(f.t.Context(), f.body, f.report)
	if err != nil {
		f.t.Fatal(err)
	}
	progress, err := records.Progress(f.t.Context(), f.body, ids, f.report)
	if err != nil {
		f.t.Fatal(err)
	}
	for _, id := range ids {
		progress.Include(id, reason, false)
	}
	return &record.Cycle{Reason: reason, Base: base, Old: old, New: records.Essence(f.body, nil), Progress: progress}
}

// finished returns a cycle whose handlers have succeeded.
func (f *fixture) finished(reason cause.Reason, ids ...string) *record.Cycle {
	f.t.Helper()
	c := f.cycle(reason, ids...)
	succeed(c, ids...)
	return c
}

// succeed records the success of handlers.
func succeed(c *record.Cycle, ids ...string) {
	for _, id := range ids {
		state := c.Progress.Load(id)
		state.Success, state.Stopped, state.Retries = true, time.Now(), 1
		c.Unreported = append(c.Unreported, id)
	}
}

// edit adds what a handler wants to be written.
func (f *fixture) edit(id string, fill func(*patch.Patch)) {
	p := &patch.Patch{}
	fill(p)
	f.state.Add(call.Edit{ID: id, Patch: p, Done: func() { f.done[id]++ }})
}

// set returns what sets a field.
func set(value any, path ...string) func(*patch.Patch) {
	return func(p *patch.Patch) { p.Set(value, path...) }
}

// appendTo returns a transformation, which must not be repeated on its own result.
func appendTo(path ...string) func(*patch.Patch) {
	return func(p *patch.Patch) {
		p.Apply(func(obj *unstructured.Unstructured) error {
			list, _, err := unstructured.NestedSlice(obj.Object, path...)
			if err != nil {
				return err
			}
			return unstructured.SetNestedSlice(obj.Object, append(list, "x"), path...)
		})
	}
}

// storedRecord returns the record of a handler as it is on the server.
func (f *fixture) storedRecord(id string) *storage.Record {
	f.t.Helper()
	stored, err := f.writer.Records.Record(f.t.Context(), f.cached().Body(), id, f.report)
	if err != nil {
		f.t.Fatal(err)
	}
	return stored
}

// storedBase returns the diff base as it is on the server.
func (f *fixture) storedBase() object.Essence {
	f.t.Helper()
	base, _, err := f.writer.Records.Base(f.t.Context(), f.cached().Body(), f.report)
	if err != nil {
		f.t.Fatal(err)
	}
	return base
}

// otherOperator writes records as another operator does.
func (f *fixture) otherOperator(put func(records record.Keeper, body *object.Body, into storage.Patch) error) {
	f.t.Helper()
	into := storage.Patch{}
	if err := put(f.writer.Records, f.cached().Body(), into); err != nil {
		f.t.Fatal(err)
	}
	f.change(into)
}

// expect checks a value.
func (f *fixture) expect(what string, got, want any) {
	f.t.Helper()
	if a, b := fmt.Sprint(got), fmt.Sprint(want); a != b {
		f.t.Errorf("%s: got %s, want %s", what, a, b)
	}
}

// expectSent checks the requests since the last call, as "PATCH status, GET".
func (f *fixture) expectSent(want string) {
	f.t.Helper()
	f.expect("requests", strings.Join(f.sent(), ", "), want)
}
