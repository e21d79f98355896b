package kopftest_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/kopftest"
)

var ofConfigMaps = kopf.Resource("v1", "configmaps")

// told are the calls of a handler of children, in one line each.
type told struct {
	mu      sync.Mutex // calls for several objects run at the same time
	lines   []string
	failure error
}

func (w *told) handle(_ context.Context, c *kopf.ChildChange) error {
	var names []string
	for _, child := range c.Children() {
		names = append(names, child.Name())
	}
	line := fmt.Sprintf("%s %s of %v", c.Name(), c.Reason(), names)
	if !c.Initial() {
		line = fmt.Sprintf("%s %s %s %v of %v", c.Name(), c.Reason(), c.Child().Name(), c.Diff(), names)
	}
	if c.Moved() {
		line += ", moved"
	}
	if c.Retry() > 0 {
		line += fmt.Sprintf(", retry %d", c.Retry())
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lines = append(w.lines, line)
	return w.failure
}

// expect compares the calls since the last time.
func (w *told) expect(t *testing.T, want ...string) {
	t.Helper()
	if got := strings.Join(w.lines, "\n"); got != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", got, strings.Join(want, "\n"))
	}
	w.lines = nil
}

func withName(s *kopf.Settings) { s.Name = "test" }

// withChildren runs a test of a handler of config maps that belong to examples.
func withChildren(t *testing.T, test func(t *testing.T, h *kopftest.Harness, w *told), options ...kopf.ChildOption) {
	t.Helper()
	w := &told{}
	declare := func(r *kopf.Registry) {
		r.OnChild(examples, ofConfigMaps, w.handle, append(options, kopf.ID("tell"))...)
	}
	inVirtualTime(t, declare, func(t *testing.T, h *kopftest.Harness) { test(t, h, w) }, kopftest.Settings(withName))
}

// childOf returns a config map of a parent.
func childOf(parent *unstructured.Unstructured, name, value string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns", OwnerReferences: ownersOf(parent)},
		Data:       map[string]string{"value": value},
	}
}

func ownersOf(parent *unstructured.Unstructured) []metav1.OwnerReference {
	return []metav1.OwnerReference{{APIVersion: "kopf.dev/v1", Kind: "KopfExample", Name: parent.GetName(), UID: parent.GetUID()}}
}

func TestChildrenAreTold(t *testing.T) {
	withChildren(t, func(t *testing.T, h *kopftest.Harness, w *told) {
		one := example("one")
		h.Create(one)
		h.Settle()
		w.expect(t) // it has no children
		h.Create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "stranger", Namespace: "ns"}})
		child := childOf(one, "a", "1")
		h.Create(child)
		h.Settle()
		if len(w.lines) != 1 || !strings.HasPrefix(w.lines[0], "one create a ") {
			t.Errorf("got %q", w.lines)
		}
		w.lines = nil
		child.Data["value"] = "2"
		h.Update(child)
		h.Settle()
		w.expect(t, "one update a change data.value: \"1\" -> \"2\" of [a]")
		h.Delete(child)
		h.Settle()
		if len(w.lines) != 1 || !strings.HasPrefix(w.lines[0], "one delete a ") || !strings.HasSuffix(w.lines[0], "of []") {
			t.Errorf("got %q", w.lines)
		}
		calls := h.Calls("tell")
		if len(calls) != 3 || calls[2].Child != "configmaps/a" {
			t.Errorf("the harness recorded %v", calls)
		}
		if got := h.Writes(); len(got) > 0 {
			t.Errorf("the operator wrote %s", summary(got))
		}
		if got := h.Events(); len(got) > 0 {
			t.Errorf("the operator posted %v", got)
		}
	})
}

// A child is deleted and created again while a call for it runs. Both are told, one after another, although nothing else
// happens to the parent.
func TestAChildThatComesBackUnderItsNameIsTold(t *testing.T) {
	var reasons []string
	inVirtualTime(t, func(r *kopf.Registry) {
		r.OnChild(examples, ofConfigMaps, func(_ context.Context, c *kopf.ChildChange) error {
			reasons = append(reasons, string(c.Reason()))
			time.Sleep(time.Minute)
			return nil
		}, kopf.ID("tell"))
	}, func(t *testing.T, h *kopftest.Harness) {
		one := example("one")
		h.Create(one)
		h.Settle()
		child := childOf(one, "a", "1")
		h.Create(child)
		h.Settle()
		h.Delete(child)
		h.Create(childOf(one, "a", "2"))
		h.Advance(time.Hour)
		if want := []string{"create", "delete", "create"}; !slices.Equal(reasons, want) {
			t.Errorf("got %q, want %q", reasons, want)
		}
	}, kopftest.Settings(withName))
}

func TestAfterARestartAllChildrenAreTold(t *testing.T) {
	withChildren(t, func(t *testing.T, h *kopftest.Harness, w *told) {
		one, two := example("one"), example("two")
		h.Create(one)
		h.Create(two)
		h.Create(childOf(one, "b", "1"))
		h.Create(childOf(one, "a", "1"))
		h.Settle()
		w.lines = nil
		h.Restart()
		slices.Sort(w.lines) // objects have no order
		w.expect(t, "one resume of [a b]", "two resume of []")
		if got := h.Writes(); len(got) > 0 {
			t.Errorf("the operator wrote %s", summary(got))
		}
	})
}

func TestAHandlerOfChildrenIsCalledAlone(t *testing.T) {
	one := example("one")
	a, b := childOf(one, "a", "1"), childOf(one, "b", "1")
	before := childOf(one, "a", "0")
	for want, options := range map[string][]kopftest.CallOption{
		"one resume of [a b]": {kopftest.Children(a, b)},
		"one update a change data.value: \"0\" -> \"1\" of [a], retry 1": {kopftest.Child(a), kopftest.OldChild(before), kopftest.Children(a), kopftest.Attempt(2)},
	} {
		w := &told{failure: errors.New("no")}
		if outcome := kopftest.Call(t, w.handle, one, options...); !errors.Is(outcome.Err, w.failure) {
			t.Errorf("got %v", outcome.Err)
		}
		w.expect(t, want)
	}
	for reason, options := range map[kopf.Reason][]kopftest.CallOption{
		kopf.ReasonCreate: {kopftest.Child(a)},
		kopf.ReasonDelete: {kopftest.Child(a), kopftest.Reason(kopf.ReasonDelete)},
	} {
		outcome := kopftest.CallChildFor(t, func(_ context.Context, node *corev1.Node, child *corev1.ConfigMap, c *kopf.ChildChange) error {
			if c.Reason() != reason || child.Name != "a" || node.Name != "node" {
				t.Errorf("got %s %v of %v", c.Reason(), child, node)
			}
			kopf.Update(c, func(n *corev1.Node) error { n.Labels = map[string]string{"seen": "yes"}; return nil })
			return nil
		}, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node"}}, options...)
		if outcome.Err != nil || outcome.Object.GetLabels()["seen"] != "yes" {
			t.Errorf("got %+v", outcome)
		}
	}
}

func TestAMovedChildIsToldToBothParents(t *testing.T) {
	withChildren(t, func(t *testing.T, h *kopftest.Harness, w *told) {
		one, two := example("one"), example("two")
		h.Create(one)
		h.Create(two)
		child := childOf(one, "a", "1")
		h.Create(child)
		h.Settle()
		w.lines = nil
		child.OwnerReferences = ownersOf(two)
		h.Update(child)
		h.Settle()
		got := strings.Join(w.lines, "\n")
		for _, want := range []string{"one delete a ", "two create a "} {
			if !strings.Contains(got, want) {
				t.Errorf("got %s", got)
			}
		}
		if len(w.lines) != 2 || strings.Count(got, ", moved") != 2 {
			t.Errorf("got %s", got)
		}
	})
}

func TestFailingCallsAreRecordedAndRetried(t *testing.T) {
	withChildren(t, func(t *testing.T, h *kopftest.Harness, w *told) {
		one := example("one")
		h.Create(one)
		a, b := childOf(one, "a", "1"), childOf(one, "b", "1")
		h.Create(a)
		h.Create(b)
		h.Settle()
		w.lines, w.failure = nil, errors.New("no")
		a.Data["value"] = "2"
		h.Update(a)
		h.Settle()
		w.expect(t, "one update a change data.value: \"1\" -> \"2\" of [a b]")
		record := recordOf(h, one)
		if !strings.Contains(record, `"retries":1`) || !strings.Contains(record, `"purpose":"child"`) || len(h.Writes()) != 1 {
			t.Errorf("got %s after %s", record, summary(h.Writes()))
		}
		// Changes are merged while the call waits, and do not hold up other calls.
		a.Data["value"] = "3"
		h.Update(a)
		b.Data["value"] = "2"
		w.failure = nil
		h.Update(b)
		h.Settle()
		w.expect(t, "one update b change data.value: \"1\" -> \"2\" of [a b]")
		if got := recordOf(h, one); got != record {
			t.Errorf("the record became %s", got)
		}
		h.Advance(time.Minute)
		w.expect(t, "one update a change data.value: \"1\" -> \"3\" of [a b], retry 1")
		if got := recordOf(h, one); got != "" {
			t.Errorf("the record is still there: %s", got)
		}
		if got := h.Writes(); len(got) != 2 {
			t.Errorf("got %s", summary(got))
		}
	})
}

// recordOf returns the record of the handler on an object.
func recordOf(h *kopftest.Harness, of *unstructured.Unstructured) string {
	return h.Get(of.DeepCopy()).GetAnnotations()["kopf.zalando.org/tell"]
}

func TestAFailingCallIsRetriedAfterARestart(t *testing.T) {
	withChildren(t, func(t *testing.T, h *kopftest.Harness, w *told) {
		one := example("one")
		h.Create(one)
		a := childOf(one, "a", "1")
		w.failure = errors.New("no")
		h.Create(a)
		h.Settle()
		h.Restart()
		w.lines = nil
		h.Advance(30 * time.Second)
		w.expect(t) // the delay of the record counts
		h.Advance(time.Minute)
		w.expect(t, "one resume of [a], retry 1")
		if record := recordOf(h, one); !strings.Contains(record, `"retries":2`) {
			t.Errorf("got %s", record)
		}
		w.failure = nil
		h.Advance(time.Minute)
		w.expect(t, "one resume of [a], retry 2")
		if record := recordOf(h, one); record != "" {
			t.Errorf("got %s", record)
		}
	})
}
