package kopftest_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kopf-go/kopf/internal/condition"
	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/kopftest"
	"github.com/kopf-go/kopf/pkg/model/rollout"
)

// conditionsOf returns the conditions of an object, as "Ready=True".
func conditionsOf(h *kopftest.Harness, obj *unstructured.Unstructured) string {
	h.Get(obj)
	var texts []string
	for _, item := range condition.Of(obj.Object) {
		c, _ := item.(map[string]any)
		texts = append(texts, fmt.Sprintf("%v=%v", c["type"], c["status"]))
	}
	return strings.Join(texts, " ")
}

func TestConditionsInVirtualTime(t *testing.T) {
	declare := func(r *kopf.Registry) {
		r.OnCreate(examples, func(_ context.Context, c *kopf.Change) error {
			c.SetCondition(metav1.Condition{Type: "Seen", Status: metav1.ConditionTrue, Reason: "Called"})
			if c.Retry() == 0 {
				return kopf.Temporary(errors.New("not yet"), time.Hour)
			}
			return nil
		}, kopf.ID("create"))
		r.Conditions(examples)
	}
	inVirtualTime(t, declare, func(t *testing.T, h *kopftest.Harness) {
		one := example("one")
		h.Create(one)
		h.Settle()
		if got := conditionsOf(h, one); got != "Seen=True Ready=False Reconciling=True" {
			t.Errorf("got %s", got)
		}
		h.Advance(time.Hour)
		if got := conditionsOf(h, one); got != "Seen=True Ready=True" || len(h.Writes()) != 4 {
			t.Errorf("got %s, and the writes %v", got, h.Writes())
		}
		ready := condition.Of(one.Object).Get("Ready")
		h.Advance(time.Hour)
		h.Restart()
		h.Settle()
		if conditionsOf(h, one); condition.Of(one.Object).Get("Ready")["lastTransitionTime"] != ready["lastTransitionTime"] || len(h.Writes()) != 4 {
			t.Errorf("got the writes %v", h.Writes())
		}
	})
}

func TestOneCallSetsConditions(t *testing.T) {
	outcome := kopftest.Call(t, func(_ context.Context, c *kopf.Change) error {
		c.SetCondition(metav1.Condition{Type: "Seen", Status: metav1.ConditionTrue, Reason: "Called"})
		return nil
	}, example("one"))
	if seen := condition.Of(outcome.Object.Object).Get("Seen"); seen["reason"] != "Called" {
		t.Errorf("got %v", outcome.Object)
	}
	invalid := kopftest.Call(t, func(_ context.Context, c *kopf.Change) error {
		c.SetCondition(metav1.Condition{Type: "Seen"})
		return nil
	}, example("one"))
	if invalid.Err == nil || !strings.Contains(invalid.Err.Error(), "it must be True, False, or Unknown") {
		t.Errorf("got %v", invalid.Err)
	}
}

// lifeOfRevisions is a scenario: objects are created, the second revision reaches them step by
// step, fails for one of them, and continues when that is corrected.
func lifeOfRevisions(t *testing.T, fault kopftest.Option) {
	revision := "1"
	render := func(_ context.Context, c *kopf.Change) error {
		if broken, _ := c.Spec().Bool("broken"); broken && revision == "2" {
			return kopf.Permanent(errors.New("broken"))
		}
		c.SetResult(revision)
		return nil
	}
	h := kopftest.New(t, func() *kopf.Registry {
		r := kopf.NewRegistry()
		r.OnCreate(examples, render, kopf.ID("render"), kopf.Revision(revision), kopf.Rollout(rollout.First(1), rollout.Then(2)))
		r.OnUpdate(examples, render, kopf.ID("render"))
		r.Conditions(examples)
		return r
	}, fault, kopftest.CRDs(crds))
	all := make([]*unstructured.Unstructured, 4)
	for i := range all {
		all[i] = example(fmt.Sprintf("object-%d", i))
		if i == 1 {
			_ = unstructured.SetNestedField(all[i].Object, true, "spec", "broken")
		}
		h.Create(all[i])
	}
	h.Advance(2 * time.Minute)
	revision = "2"
	h.Restart()
	h.Advance(2 * time.Minute)
	if got := states(h, all); !slices.Equal(got[:2], []string{"2 Ready=True", "1 Ready=False Stalled=True"}) || got[3] != "1 Ready=True" {
		t.Errorf("got %q", got)
	}
	h.Patch(all[1], `{"spec":{"broken":null}}`)
	h.Advance(2 * time.Minute)
	if got := slices.Compact(states(h, all)); !slices.Equal(got, []string{"2 Ready=True"}) {
		t.Errorf("got %q", got)
	}
}

func states(h *kopftest.Harness, all []*unstructured.Unstructured) []string {
	var texts []string
	for _, obj := range all {
		conditions := conditionsOf(h, obj)
		result, _, _ := unstructured.NestedString(obj.Object, "status", "render")
		texts = append(texts, result+" "+conditions)
	}
	return texts
}

// The operator crashes before and after each write, and the answers to its writes are lost.
func TestSweepOfARollout(t *testing.T) { kopftest.Sweep(t, lifeOfRevisions) }
