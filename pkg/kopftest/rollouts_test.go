package kopftest_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/kopftest"
	"github.com/kopf-go/kopf/pkg/model/rollout"
)

// revised is an operator with one handler that has a revision, and whose calls are listed.
type revised struct {
	*kopftest.Harness

	revision string
	options  []kopf.ChangeOption
	labels   map[string]kopf.Matcher
	// fails returns the error of a call.
	fails func(c *kopf.Change) error
	mu    sync.Mutex // different objects are handled at the same time
	calls []string
}

// withRevisions runs a test for an operator with a handler under revision 1.
func withRevisions(t *testing.T, test func(t *testing.T, r *revised), options ...kopf.ChangeOption) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := &revised{revision: "1", options: options}
		r.Harness = kopftest.New(t, r.declare, kopftest.CRDs(crds))
		test(t, r)
	})
}

func (r *revised) declare() *kopf.Registry {
	registry, revision := kopf.NewRegistry(), r.revision
	call := func(_ context.Context, c *kopf.Change) error {
		r.mu.Lock()
		r.calls = append(r.calls, fmt.Sprintf("%s %s %s", c.Reason(), c.Name(), revision))
		r.mu.Unlock()
		if r.fails != nil {
			return r.fails(c)
		}
		return nil
	}
	var creation []kopf.ChangeOption
	if revision != "" {
		creation = append(creation, kopf.Revision(revision))
		creation = append(creation, r.options...)
	}
	registry.OnCreate(examples, call, append(creation, kopf.ID("render"), kopf.Labels(r.labels))...)
	labels := kopf.Labels(r.labels)
	registry.OnUpdate(examples, call, kopf.ID("render"), labels)
	registry.OnDelete(examples, call, kopf.ID("render"), labels)
	return registry
}

// upgrade restarts the operator with another revision.
func (r *revised) upgrade(revision string) {
	r.revision = revision
	r.Restart()
	r.Advance(time.Minute)
}

// expect compares the calls since the last time.
func (r *revised) expect(t *testing.T, when string, want ...string) {
	t.Helper()
	if !slices.Equal(r.calls, want) {
		t.Errorf("%s: got the calls %q, not %q", when, r.calls, want)
	}
	r.calls = nil
}

// marks returns the revisions that are stored in an object.
func (r *revised) marks(obj *unstructured.Unstructured) string {
	r.Get(obj)
	return obj.GetAnnotations()["kopf.zalando.org/handled-revisions"]
}

func permanently(name string) func(c *kopf.Change) error {
	return func(c *kopf.Change) error {
		if c.Name() == name {
			return kopf.Permanent(errors.New("broken"))
		}
		return nil
	}
}

func forAnHour(name string) func(c *kopf.Change) error {
	return func(c *kopf.Change) error {
		if c.Name() == name && c.Retry() == 0 {
			return kopf.Temporary(errors.New("not yet"), time.Hour)
		}
		return nil
	}
}

func TestRolloutTakesOneObjectAfterTheOther(t *testing.T) {
	withRevisions(t, func(t *testing.T, r *revised) {
		r.Create(example("a"))
		r.Settle()
		r.Create(example("b"))
		r.Advance(time.Minute)
		r.expect(t, "at the creation", "create a 1", "create b 1")
		r.Restart()
		r.Advance(time.Minute)
		r.expect(t, "after a restart with the same revision")
		r.fails = forAnHour("a")
		r.upgrade("2")
		r.expect(t, "after the upgrade", "update a 2")
		r.Advance(time.Hour)
		r.expect(t, "after the retry", "update a 2", "update b 2")
		r.upgrade("2")
		r.expect(t, "after the rollout")
	}, kopf.Rollout(rollout.First(1), rollout.Then(1)))
}

func TestObjectsThatAreCreatedCountInARollout(t *testing.T) {
	withRevisions(t, func(t *testing.T, r *revised) {
		b := example("b")
		r.Create(example("a"))
		r.Create(b)
		r.Advance(time.Minute)
		r.fails = forAnHour("a")
		r.upgrade("2")
		r.calls = nil
		created := example("created")
		r.fails = permanently("created")
		r.Create(created)
		r.Advance(time.Hour)
		r.expect(t, "after a creation that failed", "create created 2", "update a 2")
		r.fails = nil
		r.Patch(created, `{"spec":{"field":"mended"}}`)
		r.Advance(time.Minute)
		r.expect(t, "after the object was mended", "update created 2", "update b 2")
	}, kopf.Rollout(rollout.First(1), rollout.Then(1)))
}

func TestCreationsThatAreNotDoneDoNotHoldARollout(t *testing.T) {
	withRevisions(t, func(t *testing.T, r *revised) {
		r.fails = forAnHour("0-created")
		r.Create(example("0-created"))
		r.Create(example("a"))
		r.Create(example("b"))
		r.Advance(time.Minute)
		r.calls = nil
		r.upgrade("2")
		r.expect(t, "while a creation is not done", "update a 2", "update b 2")
		r.Advance(time.Hour)
		r.expect(t, "when it is done", "create 0-created 2")
	}, kopf.Rollout(rollout.First(1), rollout.Then(1)))
}

func TestDeletionsDoNotMarkARevision(t *testing.T) {
	withRevisions(t, func(t *testing.T, r *revised) {
		a := example("a")
		a.SetFinalizers([]string{"example.com/other"})
		r.Create(a)
		r.Advance(time.Minute)
		r.fails = forAnHour("a")
		r.upgrade("2")
		r.Delete(a)
		r.Advance(2 * time.Hour)
		r.expect(t, "of a deletion", "create a 1", "update a 2", "delete a 2", "delete a 2")
		if got := r.marks(a); got != `{"done":{"render":"1"}}` || len(a.GetFinalizers()) != 1 {
			t.Errorf("got the marks %s, and the finalizers %v", got, a.GetFinalizers())
		}
	})
}

// Another client removes the mark while the handler runs, in which the revision is the same.
func TestMarksThatAreRemovedMeanwhileAreWrittenAgain(t *testing.T) {
	withRevisions(t, func(t *testing.T, r *revised) {
		a := example("a")
		r.Create(a)
		r.Advance(time.Minute)
		r.fails = func(*kopf.Change) error { time.Sleep(time.Minute); return nil }
		r.Patch(a, `{"spec":{"field":"x"}}`)
		r.Advance(time.Second)
		r.Patch(a, `{"metadata":{"annotations":{"kopf.zalando.org/handled-revisions":null}}}`)
		r.Advance(time.Hour)
		r.upgrade("1")
		r.expect(t, "in the end", "create a 1", "update a 1")
		if got := r.marks(a); got != `{"done":{"render":"1"}}` {
			t.Errorf("got the marks %s", got)
		}
	})
}

// A creation that is retried is no part of a rollout, and does not hold it up.
func TestRolloutLeavesOutObjectsThatWereNeverHandled(t *testing.T) {
	withRevisions(t, func(t *testing.T, r *revised) {
		for _, name := range []string{"a", "c"} {
			r.Create(example(name))
			r.Settle()
		}
		r.calls = nil
		r.fails = func(c *kopf.Change) error {
			if c.Name() == "b" {
				return kopf.Temporary(errors.New("not yet"), 10*time.Hour)
			}
			return forAnHour("a")(c)
		}
		r.upgrade("2")
		r.Create(example("b"))
		r.Advance(time.Minute)
		r.expect(t, "after the upgrade", "update a 2", "create b 2")
		r.Advance(time.Hour)
		r.expect(t, "after the retry", "update a 2", "update c 2")
	}, kopf.Rollout(rollout.First(1), rollout.Then(1)))
}

// The operator has seen the object before, so nothing but the marks is missing.
func TestBaselineAdoptsObjectsWithoutMarksAgain(t *testing.T) {
	withRevisions(t, func(t *testing.T, r *revised) {
		a := example("a")
		r.Create(a)
		r.Advance(time.Minute)
		r.expect(t, "at first", "create a 1")
		for i, request := range []string{"null", `"1 unknown"`} {
			before := len(r.Writes())
			r.Patch(a, `{"metadata":{"annotations":{"kopf.zalando.org/handled-revisions":null,"kopf.zalando.org/request-rerun":`+request+`}}}`)
			r.Advance(time.Minute)
			marks, asked := r.marks(a), a.GetAnnotations()["kopf.zalando.org/requests-handled"]
			if marks != `{"done":{"render":"1"}}` || (asked == `{"rerun":"1 unknown"}`) != (i == 1) || len(r.Writes()) != before+1 {
				t.Errorf("got the marks %s, the request %s, and the writes %v", marks, asked, r.Writes()[before:])
			}
		}
		r.expect(t, "in the end")
	}, kopf.Baseline())
}

func TestBaselineAdoptsObjectsWithOneWrite(t *testing.T) {
	withRevisions(t, func(t *testing.T, r *revised) {
		r.revision, r.labels = "", map[string]kopf.Matcher{"tier": kopf.Equal("gold")}
		r.Restart()
		a, other := example("a"), example("other")
		for _, obj := range []*unstructured.Unstructured{a, other} {
			obj.SetLabels(map[string]string{"tier": "gold"})
			r.Create(obj)
		}
		r.Advance(time.Minute)
		r.Patch(other, `{"metadata":{"labels":{"tier":null}}}`)
		r.Advance(time.Minute)
		r.calls = nil
		r.Stop()
		before := len(r.Writes())
		r.Patch(a, `{"metadata":{"annotations":{"kopf.zalando.org/request-rerun":"1 unknown"}}}`)
		r.revision = "1"
		r.Start()
		r.Advance(time.Minute)
		r.expect(t, "with the baseline")
		marks, asked := r.marks(a), a.GetAnnotations()["kopf.zalando.org/requests-handled"]
		if marks != `{"done":{"render":"1"}}` || asked != `{"rerun":"1 unknown"}` || r.marks(other) != "" || len(r.Writes()) != before+1 {
			t.Errorf("got the marks %s, the request %s, and the writes %v", marks, asked, r.Writes()[before:])
		}
		r.upgrade("2")
		r.expect(t, "with the next revision", "update a 2")
	}, kopf.Baseline())
}
