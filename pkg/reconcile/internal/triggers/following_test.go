package triggers_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/internal/handlertest"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/selector"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/triggers"
)

// followed is a parent whose handler is called.
type followed struct {
	t       *testing.T
	index   *triggers.Children
	kind    *triggers.ChildKind
	trigger *triggers.Following
	passes  int
	lines   []string
	during  func() // happens while the handler runs
}

// followingOf returns the parent u1, whose handler was told about the children that it has.
func followingOf(t *testing.T, isKnown bool, existing ...*object.Snapshot) *followed {
	f := &followed{t: t, index: newChildren(), kind: pods(), during: func() {}}
	for _, child := range existing {
		f.index.Observe(f.kind, added(child))
	}
	d, err := handler.Child(selector.New("webs"), ofPods, handlertest.Function(f.call), handler.ID("tell"))
	if err != nil {
		t.Fatal(err)
	}
	parent := triggers.Parent{Link: ownedBy("u1"), Namespace: "ns", Enqueue: func() { f.passes++ }}
	f.trigger = f.index.NewFollowing(d, parent, isKnown)
	return f
}

func (f *followed) call(_ context.Context, c *handler.Call) error {
	line := fmt.Sprintf("%s of %d", c.Reason(), len(c.Child.Children()))
	if c.Child.Child != nil {
		line = fmt.Sprintf("%s %s %v", c.Reason(), c.Child.Child.Body().Name(), c.Transition().Diff)
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

func TestChangesAreMergedWhileACallIsPending(t *testing.T) {
	f := followingOf(t, false)
	f.index.Observe(f.kind, added(pod(t, "a", "owner=u1")))
	f.pass()
	f.lines, f.passes = nil, 0
	for size := range 100 {
		f.index.Observe(f.kind, modified(pod(t, "a", "owner=u1", fmt.Sprintf("size=%d", size))))
	}
	if f.passes != 1 {
		t.Errorf("%d passes were requested", f.passes)
	}
	f.pass()
	f.expect(false, "update a change spec.size: 0 -> 99")
}

func TestChangesDuringACallLeadToAnother(t *testing.T) {
	f := followingOf(t, false)
	f.index.Observe(f.kind, added(pod(t, "a", "owner=u1")))
	f.pass()
	f.lines = nil
	f.index.Observe(f.kind, modified(pod(t, "a", "owner=u1", "size=1")))
	f.during = func() {
		f.index.Observe(f.kind, modified(pod(t, "a", "owner=u1", "size=2")))
		f.index.Observe(f.kind, modified(pod(t, "a", "owner=u1", "size=3")))
	}
	f.pass()
	f.expect(true, "update a change spec.size: 0 -> 1")
	f.pass()
	f.expect(false, "update a change spec.size: 1 -> 3")
}

func TestAFailedCallIsMadeAgainFromTheSameState(t *testing.T) {
	f := followingOf(t, false)
	f.index.Observe(f.kind, added(pod(t, "a", "owner=u1")))
	f.pass()
	f.lines = nil
	f.index.Observe(f.kind, modified(pod(t, "a", "owner=u1", "size=1")))
	f.pass("tell/pods/a")
	f.index.Observe(f.kind, modified(pod(t, "a", "owner=u1", "size=2")))
	f.pass()
	f.expect(false, "update a change spec.size: 0 -> 1", "update a change spec.size: 0 -> 2")

	// The handler may have done something before it failed, so it sees the way back, too.
	f.index.Observe(f.kind, modified(pod(t, "a", "owner=u1", "size=3")))
	f.pass("tell/pods/a")
	f.index.Observe(f.kind, modified(pod(t, "a", "owner=u1", "size=2")))
	f.pass()
	f.expect(false, "update a change spec.size: 2 -> 3", "update a no changes")
}

func TestAChildThatIsAsBeforeNeedsNoCall(t *testing.T) {
	f := followingOf(t, false)
	f.index.Observe(f.kind, added(pod(t, "a", "owner=u1", "size=1")))
	f.pass()
	f.lines = nil
	f.index.Observe(f.kind, modified(pod(t, "a", "owner=u1", "size=2")))
	f.index.Observe(f.kind, modified(pod(t, "a", "owner=u1", "size=1")))
	f.pass()
	f.index.Observe(f.kind, added(pod(t, "short", "owner=u1")))
	f.index.Observe(f.kind, deleted(pod(t, "short", "owner=u1")))
	f.expect(false)
}

func TestARecreatedChildIsTwoChildren(t *testing.T) {
	f := followingOf(t, false)
	f.index.Observe(f.kind, added(pod(t, "a", "owner=u1", "uid=1")))
	f.pass()
	f.lines = nil
	f.index.Observe(f.kind, deleted(pod(t, "a", "owner=u1", "uid=1")))
	f.index.Observe(f.kind, added(pod(t, "a", "owner=u1", "uid=2")))
	f.pass()
	if len(f.lines) != 1 || !strings.HasPrefix(f.lines[0], "delete a") {
		t.Errorf("got %q", f.lines)
	}
	f.lines = nil
	f.pass()
	if len(f.lines) != 1 || !strings.HasPrefix(f.lines[0], "create a") || f.trigger.IsPending() {
		t.Errorf("got %q", f.lines)
	}
}

func TestTheChildrenOfANewParentAreNew(t *testing.T) {
	f := followingOf(t, false, pod(t, "a", "owner=u1"), pod(t, "b", "owner=u1"))
	f.pass()
	if len(f.lines) != 2 || !strings.HasPrefix(f.lines[0], "create a") || !strings.HasPrefix(f.lines[1], "create b") {
		t.Errorf("got %q", f.lines)
	}
}

func TestTheFirstCallIsAboutAllChildren(t *testing.T) {
	f := followingOf(t, true)
	f.index.Observe(f.kind, added(pod(t, "a", "owner=u1")))
	f.index.Observe(f.kind, added(pod(t, "b", "owner=u1")))
	f.during = func() { f.index.Observe(f.kind, modified(pod(t, "a", "owner=u1", "size=1"))) }
	f.pass("tell")
	f.expect(true, "resume of 2")
	f.during = func() { f.index.Observe(f.kind, modified(pod(t, "a", "owner=u1", "size=2"))) }
	f.pass()
	f.expect(true, "resume of 2")
	f.pass()
	f.expect(false, "update a change spec.size: 1 -> 2")
}

// A call that was interrupted, by a panic or by the end of a pause, is pending again.
func TestAnInterruptedCallIsMadeAgain(t *testing.T) {
	f := followingOf(t, true)
	f.trigger.Begin(f.trigger.Calls()[0].ID)
	f.pass()
	f.expect(false, "resume of 0")
	f.index.Observe(f.kind, added(pod(t, "a", "owner=u1")))
	f.trigger.Begin(f.trigger.Calls()[0].ID)
	f.pass()
	if len(f.lines) != 1 || f.trigger.IsPending() {
		t.Errorf("got %q", f.lines)
	}
}

func TestChildrenOfOtherKindsAreForOtherHandlers(t *testing.T) {
	f := followingOf(t, false)
	other := pods()
	other.Selectors = []selector.Selector{selector.New("pods")}
	f.index.Observe(other, added(pod(t, "a", "owner=u1")))
	f.expect(false)
}

func TestAStoppedTriggerIsNotTold(t *testing.T) {
	f := followingOf(t, false)
	f.trigger.Stop()
	f.index.Observe(f.kind, added(pod(t, "a", "owner=u1")))
	f.expect(false)
}
