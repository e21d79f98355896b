package triggers_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/internal/handlertest"
	"github.com/kopf-go/kopf/pkg/model/cause"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/selector"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/triggers"
)

// followed is a parent whose handler is called.
type followed struct {
	t       *testing.T
	index   *triggers.Children
	kind    *triggers.ChildKind
	handler *handler.Declaration
	parent  triggers.Parent
	trigger *triggers.Following
	passes  int
	lines   []string
	during  func() // happens while the handler runs
}

// followingOf returns the parent u1, whose handler was told about the children that it has.
func followingOf(t *testing.T, isKnown bool, existing ...*object.Snapshot) *followed {
	f := &followed{t: t, index: newChildren(), kind: pods(), during: func() {}}
	for _, child := range existing {
		f.observe(added(child))
	}
	var err error
	f.handler, err = handler.Child(selector.New("webs"), ofPods, handlertest.Function(f.call), handler.ID("tell"))
	if err != nil {
		t.Fatal(err)
	}
	f.parent = triggers.Parent{Link: ownedBy("u1"), Namespace: "ns", Enqueue: func() { f.passes++ }}
	f.trigger = f.index.NewFollowing(f.handler, f.parent, isKnown)
	return f
}

func (f *followed) call(_ context.Context, c *handler.Call) error {
	line := fmt.Sprintf("%s of %d", c.Reason(), len(c.Child.Children()))
	if c.Child.Child != nil {
		line = fmt.Sprintf("%s %s", c.Reason(), c.Child.Child.Body().Name())
		if c.Reason() == cause.Update {
			line += fmt.Sprintf(" %v", c.Transition().Diff)
		}
		if c.Child.Moved {
			line += ", moved"
		}
	}
	f.lines = append(f.lines, line)
	f.during()
	f.during = func() {}
	return nil
}

// pass makes the pending calls. Those with the given ids fail.
func (f *followed) pass(failing ...string) {
	f.t.Helper()
	for _, d := range f.trigger.Calls() {
		f.trigger.Begin(d.ID)
		if _, err := d.Call(f.t.Context(), handler.NewCall(d, handler.CallContext{}, handler.Attempt{})); err != nil {
			f.t.Error(err)
		}
		f.trigger.End(d.ID, slices.Contains(failing, d.ID))
	}
}

// expect compares the calls since the last time, and whether others are pending.
func (f *followed) expect(pending bool, want ...string) {
	f.t.Helper()
	if got := strings.Join(f.lines, "; "); got != strings.Join(want, "; ") {
		f.t.Errorf("got %q, want %q", got, strings.Join(want, "; "))
	}
	if got := f.trigger.IsPending(); got != pending {
		f.t.Errorf("pending: %v", got)
	}
	f.lines = nil
}

// expectPasses compares the number of passes that were requested since the last time.
func (f *followed) expectPasses(want int) {
	f.t.Helper()
	if f.passes != want {
		f.t.Errorf("%d passes were requested, want %d", f.passes, want)
	}
	f.passes = 0
}

// told returns the parent after it was told of a child a.
func told(t *testing.T) *followed {
	f := followingOf(t, false)
	f.observe(added(pod(t, "a", "owner=u1")))
	f.pass()
	f.lines, f.passes = nil, 0
	return f
}

func (f *followed) observe(event object.WatchEvent) { f.index.Observe(f.kind, event) }

func TestChangesAreMergedWhileACallIsPending(t *testing.T) {
	f := told(t)
	for size := range 100 {
		f.observe(modified(pod(t, "a", "owner=u1", fmt.Sprintf("size=%d", size))))
	}
	f.expectPasses(1)
	f.pass()
	f.expect(false, "update a change spec.size: 0 -> 99")
}

func TestChangesDuringACallLeadToAnother(t *testing.T) {
	f := told(t)
	f.observe(modified(pod(t, "a", "owner=u1", "size=1")))
	f.expectPasses(1)
	f.during = func() { f.observe(modified(pod(t, "a", "owner=u1", "size=2"))) }
	f.pass()
	f.expect(true, "update a change spec.size: 0 -> 1")
	f.expectPasses(1)
	f.observe(modified(pod(t, "a", "owner=u1", "size=3")))
	f.expectPasses(0)
	f.pass()
	f.expect(false, "update a change spec.size: 1 -> 3")
}

func TestAChangeDuringACallThatIsTakenBackNeedsNoCall(t *testing.T) {
	f := told(t)
	f.observe(modified(pod(t, "a", "owner=u1", "size=1")))
	f.during = func() { f.observe(modified(pod(t, "a", "owner=u1", "size=2"))) }
	f.pass()
	f.observe(modified(pod(t, "a", "owner=u1", "size=1")))
	f.pass()
	f.expect(false, "update a change spec.size: 0 -> 1")
}

// Versions are compared without a lock: another one can come meanwhile, at any moment of the comparison.
func TestAChangeDuringTheComparisonIsNotLost(t *testing.T) {
	f := followingOf(t, false)
	large := "label=" + strings.Repeat("x", 1<<15)
	f.observe(added(pod(t, "a", "owner=u1", large)))
	f.pass()
	unchanged := modified(pod(t, "a", "owner=u1", large))
	began := time.Now()
	f.observe(unchanged)
	f.pass()
	comparison := time.Since(began)
	f.lines = nil
	for size := 1; size <= 30; size++ {
		f.observe(unchanged)
		change := modified(pod(t, "a", "owner=u1", fmt.Sprintf("size=%d", size)))
		var compared sync.WaitGroup
		compared.Go(func() { f.trigger.Calls() })
		for began = time.Now(); time.Since(began) < comparison*time.Duration(size)/20; {
			runtime.Gosched()
		}
		f.observe(change)
		compared.Wait()
		f.pass()
		if len(f.lines) != 1 {
			t.Fatalf("size %d: got %q", size, f.lines)
		}
		f.observe(unchanged)
		f.pass()
		f.lines = nil
	}
}

func TestAFailedCallIsMadeAgainFromTheSameState(t *testing.T) {
	f := told(t)
	f.observe(modified(pod(t, "a", "owner=u1", "size=1")))
	f.expectPasses(1)
	f.pass("tell/pods/a")
	f.observe(modified(pod(t, "a", "owner=u1", "size=2")))
	f.expectPasses(0) // it waits for its next attempt
	f.pass()
	f.expect(false, "update a change spec.size: 0 -> 1", "update a change spec.size: 0 -> 2")

	// The handler may have done something before it failed, so it sees the way back, too.
	f.observe(modified(pod(t, "a", "owner=u1", "size=3")))
	f.pass("tell/pods/a")
	f.observe(modified(pod(t, "a", "owner=u1", "size=2")))
	f.pass()
	f.expect(false, "update a change spec.size: 2 -> 3", "update a no changes")

	f.observe(added(pod(t, "b", "owner=u1")))
	f.pass("tell/pods/b")
	f.observe(deleted(pod(t, "b", "owner=u1")))
	f.pass()
	f.expect(false, "create b", "delete b")
}

func TestAChildThatIsAsBeforeNeedsNoCall(t *testing.T) {
	f := followingOf(t, false)
	f.observe(added(pod(t, "a", "owner=u1", "size=1")))
	f.pass()
	f.lines = nil
	f.observe(modified(pod(t, "a", "owner=u1", "size=2")))
	f.observe(modified(pod(t, "a", "owner=u1", "size=1")))
	f.pass()
	f.passes = 0
	f.observe(added(pod(t, "short", "owner=u1")))
	f.expectPasses(1)
	f.observe(deleted(pod(t, "short", "owner=u1")))
	f.expectPasses(0)
	f.expect(false)
}

func TestAMovedChildIsDeletedHereAndCreatedThere(t *testing.T) {
	f := told(t)
	move := func(owner string) { f.observe(modified(pod(t, "a", "owner="+owner))) }
	move("u2")
	f.pass()
	f.expect(false, "delete a, moved")
	move("u1")
	f.pass()
	f.expect(false, "create a, moved")

	move("u2")
	f.during = func() { move("u1") }
	f.pass()
	f.pass()
	f.expect(false, "delete a, moved", "create a, moved")

	move("u2")
	f.during = func() { move("u1"); move("u2") }
	f.pass()
	f.expect(false, "delete a, moved")
}

func TestAChildInAnotherNamespaceIsNamedInFull(t *testing.T) {
	f := told(t)
	f.parent.Namespace = "elsewhere"
	if got := f.index.NewFollowing(f.handler, f.parent, false).Calls()[0].ID; got != "tell/pods/ns/a" {
		t.Errorf("got %s", got)
	}
}

func TestARecreatedChildIsTwoChildren(t *testing.T) {
	f := followingOf(t, false)
	f.observe(added(pod(t, "a", "owner=u1", "uid=1")))
	f.pass()
	f.lines = nil
	f.observe(deleted(pod(t, "a", "owner=u1", "uid=1")))
	f.observe(added(pod(t, "a", "owner=u1", "uid=2")))
	f.observe(added(pod(t, "b", "owner=u1")))
	f.passes = 0
	f.pass("tell/pods/a", "tell/pods/b")
	f.expect(true, "delete a", "create b")
	f.expectPasses(0) // both wait for their next attempts
	f.pass("tell/pods/b")
	f.expect(true, "delete a", "create b")
	f.expectPasses(1)
	f.pass()
	f.expect(false, "create a", "create b")
	f.expectPasses(0)
}

func TestTheChildrenOfANewParentAreNew(t *testing.T) {
	f := followingOf(t, false, pod(t, "a", "owner=u1"), pod(t, "b", "owner=u1"))
	f.pass()
	f.expect(false, "create a", "create b")
}

func TestCallsAreMadeInTheOrderOfTheChanges(t *testing.T) {
	f := followingOf(t, false)
	names := []string{"g", "c", "e", "a", "b", "d", "f"}
	var want []string
	for _, name := range names {
		f.observe(added(pod(t, name, "owner=u1")))
		want = append(want, "create "+name)
	}
	f.pass()
	f.expect(false, want...)
}

func TestTheFirstCallIsAboutAllChildren(t *testing.T) {
	f := followingOf(t, true)
	f.expect(true)
	f.observe(added(pod(t, "a", "owner=u1")))
	f.observe(added(pod(t, "b", "owner=u1")))
	f.expectPasses(0)
	f.during = func() { f.observe(modified(pod(t, "a", "owner=u1", "size=1"))) }
	f.pass("tell")
	f.expect(true, "resume of 2")
	f.expectPasses(1)
	f.during = func() { f.observe(modified(pod(t, "a", "owner=u1", "size=2"))) }
	f.pass()
	f.expect(true, "resume of 2")
	f.pass()
	f.expect(false, "update a change spec.size: 1 -> 2")
}

// A call that was interrupted, by a panic or by the end of a pause, is pending again.
func TestAnInterruptedCallIsMadeAgain(t *testing.T) {
	f := followingOf(t, true)
	f.interrupt()
	f.observe(added(pod(t, "a", "owner=u1")))
	f.expectPasses(1)
	f.trigger.Calls()
	f.observe(added(pod(t, "b", "owner=u1")))
	f.expectPasses(0) // the next call sees it
	f.pass()
	f.expect(false, "resume of 0", "resume of 2")

	f.observe(added(pod(t, "c", "owner=u1")))
	f.interrupt()
	f.passes = 0
	f.trigger.Calls()
	f.observe(modified(pod(t, "c", "owner=u1", "size=1")))
	f.expectPasses(0)
	f.pass()
	f.expect(false, "create c", "create c")
}

// interrupt begins the first call, and does not end it.
func (f *followed) interrupt() {
	f.t.Helper()
	d := f.trigger.Calls()[0]
	f.trigger.Begin(d.ID)
	if _, err := d.Call(f.t.Context(), handler.NewCall(d, handler.CallContext{}, handler.Attempt{})); err != nil {
		f.t.Error(err)
	}
}

func TestChildrenOfOtherKindsAreForOtherHandlers(t *testing.T) {
	f := followingOf(t, false)
	other := pods()
	other.Selectors = []selector.Selector{selector.New("pods")}
	f.index.Observe(other, added(pod(t, "a", "owner=u1")))
	f.expect(false)
	for isKnown, want := range map[bool]string{true: "resume of 0", false: ""} {
		f.trigger = f.index.NewFollowing(f.handler, f.parent, isKnown)
		f.pass()
		f.expect(false, want)
	}
}

func TestAStoppedTriggerIsNotTold(t *testing.T) {
	f := followingOf(t, false)
	f.trigger.Stop()
	f.observe(added(pod(t, "a", "owner=u1")))
	f.expect(false)
}
