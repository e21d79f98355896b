// This example shows how to test an operator: see its tests. It orders something from an external
// system for each object, checks it until it is ready, and cancels the order in the end.
//
//	make run EXAMPLE=09-testing
//	go test ./examples/09-testing
package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/hierarchy"
	"github.com/kopf-go/kopf/pkg/kopf"
)

// shop is the external system. Tests have a fake of it.
type shop interface {
	// Order orders something, unless the number is ordered already.
	Order(ctx context.Context, number, item string) error
	IsReady(ctx context.Context, number string) (bool, error)
	Cancel(ctx context.Context, number string) error
}

// handlers need the external system.
type handlers struct{ shop shop }

// newRegistry declares the handlers, so that tests can do that for each of their operators.
func newRegistry(external shop) *kopf.Registry {
	h, r, kex := handlers{shop: external}, kopf.NewRegistry(), kopf.Resource("kopfexamples")
	r.OnCreate(kex, h.order, kopf.ID("order"), kopf.Backoff(time.Minute))
	r.OnField(kex, "spec.field", h.note, kopf.ID("note"))
	r.OnDelete(kex, h.cancel, kopf.ID("cancel"))
	r.Needs(kopf.Resource("v1", "configmaps"), "create", "patch")
	return r
}

// The uid of the object is the number of the order, so that a second call orders nothing: the
// first one may have succeeded before a crash.
func (h handlers) order(ctx context.Context, c *kopf.Change) error {
	item, ok := c.Spec().String("field")
	if !ok {
		return kopf.Permanent(errors.New("spec.field must be set"))
	}
	if err := h.shop.Order(ctx, string(c.UID()), item); err != nil {
		return err // is retried after a minute
	}
	ready, err := h.shop.IsReady(ctx, string(c.UID()))
	if err != nil {
		return err
	}
	if !ready {
		return kopf.Temporary(errors.New("the order is not ready"), time.Hour)
	}
	c.SetResult("delivered") // -> status.order
	return nil
}

// The child notes the last item. Its name is always the same, so a repeated call changes nothing.
func (handlers) note(ctx context.Context, c *kopf.Change) error {
	item, _ := c.Spec().String("field")
	child := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: c.Name() + "-note", Namespace: c.Namespace()}}
	if err := hierarchy.Adopt(ctx, child); err != nil {
		return err
	}
	child.Data = map[string]string{"item": item}
	err := c.Client().Create(ctx, child)
	if client.IgnoreAlreadyExists(err) != nil {
		return err
	}
	return c.Client().Patch(ctx, child, client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"data":{"item":%q}}`, item)))
}

func (h handlers) cancel(ctx context.Context, c *kopf.Change) error {
	return h.shop.Cancel(ctx, string(c.UID()))
}

func main() {
	kopf.Main(func(o *kopf.Options) { o.Registry = newRegistry(catalog{}) })
}

// catalog delivers everything at once.
type catalog struct{}

func (catalog) Order(context.Context, string, string) error   { return nil }
func (catalog) IsReady(context.Context, string) (bool, error) { return true, nil }
func (catalog) Cancel(context.Context, string) error          { return nil }
