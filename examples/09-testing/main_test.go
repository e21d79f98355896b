package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/kopftest"
)

// fakeShop delivers some hours after an order.
type fakeShop struct {
	mu     sync.Mutex
	orders map[string]time.Time
	broken bool
}

const delivery = 3 * time.Hour

func newFakeShop() *fakeShop { return &fakeShop{orders: map[string]time.Time{}} }

func (s *fakeShop) Order(ctx context.Context, number, _ string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.broken {
		return errors.New("the shop is closed")
	}
	if _, known := s.orders[number]; !known {
		s.orders[number] = time.Now()
		kopftest.Effect(ctx, "ordered") // must happen once for each object
	}
	return nil
}

func (s *fakeShop) IsReady(_ context.Context, number string) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Since(s.orders[number]) >= delivery, nil
}

func (s *fakeShop) Cancel(_ context.Context, number string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.orders, number)
	return nil
}

func (s *fakeShop) setBroken(broken bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.broken = broken
}

const definitions = "../crd/kopfexamples.yaml"

func newObject() *unstructured.Unstructured {
	return kopftest.Object(`{apiVersion: kopf.dev/v1, kind: KopfExample, metadata: {name: one, namespace: ns}, spec: {field: book}}`)
}

// One handler alone.
func TestAnOrderNeedsAnItem(t *testing.T) {
	object := newObject()
	unstructured.RemoveNestedField(object.Object, "spec", "field")
	outcome := kopftest.Call(t, handlers{shop: newFakeShop()}.order, object)
	var permanent *kopf.PermanentError
	if !errors.As(outcome.Err, &permanent) {
		t.Errorf("got %v", outcome.Err)
	}
}

// The operator, in virtual time: the hours take no time.
func TestAnOrderIsCheckedUntilItIsDelivered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shop := newFakeShop()
		h := kopftest.New(t, func() *kopf.Registry { return newRegistry(shop) }, kopftest.CRDs(definitions))
		shop.setBroken(true)
		object := newObject()
		h.Create(object)
		h.Settle()
		shop.setBroken(false)
		h.Advance(time.Minute)
		if calls := h.Calls("order"); len(calls) != 2 || len(shop.orders) != 1 {
			t.Errorf("got %v, and %d orders", calls, len(shop.orders))
		}
		h.Advance(delivery)
		h.Get(object)
		if result, _, _ := unstructured.NestedString(object.Object, "status", "order"); result != "delivered" || len(h.Calls("order")) != 5 {
			t.Errorf("got %q after %d calls", result, len(h.Calls("order")))
		}
	})
}

// Children, and what the garbage collector does with them.
func TestTheNoteGoesWithItsObject(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shop := newFakeShop()
		h := kopftest.New(t, func() *kopf.Registry { return newRegistry(shop) }, kopftest.CRDs(definitions))
		object, note := newObject(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "one-note", Namespace: "ns"}}
		h.Create(object)
		h.Settle()
		h.Patch(object, `{"spec":{"field":"pen"}}`)
		h.Advance(2 * delivery)
		if h.Get(note); note.Data["item"] != "pen" {
			t.Errorf("got %v", note.Data)
		}
		h.Delete(object)
		h.Settle()
		h.CollectGarbage()
		if h.Exists(object) || h.Exists(note) || len(shop.orders) != 0 {
			t.Error("something is left: " + fmt.Sprint(h.Exists(object), h.Exists(note), shop.orders))
		}
	})
}

// A crash at each write orders nothing twice, and leaves nothing behind.
func TestNothingIsOrderedTwice(t *testing.T) {
	kopftest.Sweep(t, func(t *testing.T, fault kopftest.Option) {
		shop := newFakeShop()
		h := kopftest.New(t, func() *kopf.Registry { return newRegistry(shop) }, fault, kopftest.CRDs(definitions))
		object := newObject()
		h.Create(object)
		h.Advance(2 * delivery)
		h.Delete(object)
		h.Settle()
		if len(shop.orders) != 0 {
			t.Errorf("left: %v", shop.orders)
		}
	})
}
