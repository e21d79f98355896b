package kopftest_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/kopftest"
)

var configMaps = schema.GroupResource{Resource: "configmaps"}

// declareChild declares a handler that creates a child, and is repeated after a minute.
func declareChild(r *kopf.Registry) {
	r.OnCreate(examples, func(ctx context.Context, c *kopf.Change) error {
		return ensureChild(ctx, c, "child")
	}, kopf.ID("create"), kopf.Backoff(time.Minute))
}

// The request fails as often as the test says, and then passes.
func TestFailuresOfAHandlersRequests(t *testing.T) {
	refused := apierrors.NewForbidden(configMaps, "one-child", errors.New("exceeded quota"))
	inVirtualTime(t, declareChild, func(t *testing.T, h *kopftest.Harness) {
		failure := h.Fail(kopftest.Requests{Verb: "create", Resource: "configmaps", Namespace: "ns"}, 2, refused)
		h.Create(example("one"))
		h.Settle()
		h.Advance(10 * time.Minute)
		calls := h.Calls("create")
		if len(calls) != 3 || !apierrors.IsForbidden(calls[0].Err) || calls[0].Err.Error() != refused.Error() || calls[2].Err != nil || failure.Count() != 2 {
			t.Errorf("%d failures, and the calls are:\n%s", failure.Count(), summary(calls))
		}
		if !h.Exists(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "one-child"}}) {
			t.Error("there is no child")
		}
	})
}

// An error that is no answer breaks the connection, until the test ends that; the operator's own
// writes and the requests of the test are told apart.
func TestFailuresOfTheOperatorsRequests(t *testing.T) {
	broken := errors.New("connection refused")
	inVirtualTime(t, declareChild, func(t *testing.T, h *kopftest.Harness) {
		failure := h.Fail(kopftest.Requests{Verb: "patch", Resource: "kopfexamples", Name: "one"}, 0, broken)
		one := example("one")
		h.Create(one)
		h.Advance(time.Hour)
		h.Patch(one, `{"spec":{"size":2}}`) // the test can write
		if calls := h.Calls("create"); len(calls) != 1 || failure.Count() < 2 || len(h.Writes()) != 1 {
			t.Errorf("%d failures, %d writes, and the calls are:\n%s", failure.Count(), len(h.Writes()), summary(calls))
		}
		failure.End()
		h.Advance(time.Hour)
		if count := len(h.Writes()); count < 2 || h.Writes()[count-1].Code != 200 {
			t.Errorf("the operator has not recovered: %v", h.Writes())
		}
	})
}

// Subresources, reads, and watches are requests of their own.
func TestWhichRequestsFail(t *testing.T) {
	var c client.Client
	declare := func(r *kopf.Registry) {
		r.OnCreate(examples, func(_ context.Context, change *kopf.Change) error {
			c = change.Client()
			return nil
		}, kopf.ID("create"))
	}
	inVirtualTime(t, declare, func(t *testing.T, h *kopftest.Harness) {
		h.Create(example("one"))
		h.Settle()
		gone := apierrors.NewNotFound(configMaps, "any")
		none := []*kopftest.Failure{
			h.Fail(kopftest.Requests{Resource: "kopfexamples/status"}, 0, gone), h.Fail(kopftest.Requests{Resource: "configmaps", Name: "other"}, 0, gone),
			h.Fail(kopftest.Requests{Verb: "watch", Resource: "configmaps"}, 0, gone), h.Fail(kopftest.Requests{Namespace: "other"}, 0, gone),
		}
		some := []*kopftest.Failure{
			h.Fail(kopftest.Requests{Verb: "get", Resource: "configmaps", Name: "one"}, 0, gone),
			h.Fail(kopftest.Requests{Verb: "list", Resource: "configmaps"}, 0, gone),
			h.Fail(kopftest.Requests{Verb: "deletecollection"}, 0, gone), h.Fail(kopftest.Requests{Verb: "update", Resource: "configmaps/status"}, 0, gone),
		}
		one := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "one"}}
		for i, err := range []error{
			c.Get(t.Context(), client.ObjectKeyFromObject(one), one), c.List(t.Context(), &corev1.ConfigMapList{}, client.InNamespace("ns")),
			c.DeleteAllOf(t.Context(), one, client.InNamespace("ns")), c.Status().Update(t.Context(), one),
		} {
			if !apierrors.IsNotFound(err) || fmt.Sprint(err) != gone.Error() || some[i].Count() != 1 {
				t.Errorf("%d: got %v, %d failures", i, err, some[i].Count())
			}
		}
		for i, failure := range none {
			if failure.Count() != 0 {
				t.Errorf("%d: %d failures", i, failure.Count())
			}
		}
	})
}
