package background

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kopf-go/kopf/pkg/hierarchy"
	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/test/testenv"
)

// A daemon works like a reconciler: it is woken by changes of its object and of its children, and writes before it returns.
// Another handler and another client write at the same time, and no write of the operator wakes it.
func TestDaemonReconciles(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.OnUpdate(examples, func(_ context.Context, c *kopf.Change) error {
		c.Patch().Set("done", "status", "update")
		return nil
	}, kopf.ID("update"))
	b.Daemon(examples, func(ctx context.Context, t *kopf.Task) error {
		for {
			field, _ := t.Spec().String("field")
			b.calls.Note("%s with %d children", field, len(t.Children()))
			if field == "second" && len(t.Children()) == 0 {
				child := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: t.Namespace(), Name: "child"}}
				if err := errors.Join(hierarchy.Adopt(ctx, child), t.Client().Create(ctx, child)); err != nil {
					return err
				}
			}
			t.Patch().Set(field, "status", "seen")
			if err := t.Write(ctx); err != nil {
				return err
			}
			if seen, _ := t.Status().String("seen"); seen != field {
				return kopf.Permanent(errors.New("the write is not seen"))
			}
			if t.WaitForChange(time.Hour) {
				return nil
			}
		}
	}, kopf.ID("watch"), kopf.WakeOn("spec"), kopf.WakeOn("status"), kopf.WatchChildren(kopf.Resource("v1", "configmaps")))
	b.start()
	obj := b.create("one", map[string]any{"field": "first"})
	b.Eventually(cluster.Current(obj)).Should(testenv.HavePath("status.seen", "first"), b.logs.String)
	b.patch(obj, `{"spec":{"field":"second"}}`)
	b.Eventually(cluster.Current(obj)).Should(gomega.And(testenv.HavePath("status.seen", "second"), testenv.HavePath("status.update", "done")), b.logs.String)
	b.Eventually(b.calls.All).Should(gomega.ContainElement("second with 1 children"))
	child := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "child"}}
	b.Expect(cluster.Client().Delete(t.Context(), child)).To(gomega.Succeed())
	b.Eventually(b.calls.All).Should(gomega.HaveExactElements(
		"first with 0 children", "second with 0 children", "second with 1 children", "second with 0 children", "second with 1 children"))
	b.remove(obj)
	b.expectGone(obj)
	b.Expect(b.calls.All()).To(gomega.HaveLen(5), "the writes of the operator wake nothing")
}

// The error of a refused write is that of the API server. The next write is accepted.
func TestRefusedWriteOfADaemon(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	refused := make(chan error, 1)
	b.Daemon(examples, func(ctx context.Context, t *kopf.Task) error {
		t.Patch().SetLabel("not a key", "value")
		refused <- t.Write(ctx)
		t.Patch().SetLabel("example.com/key", "value")
		if err := t.Write(ctx); err != nil {
			return err
		}
		<-t.Stopped()
		return nil
	}, kopf.ID("watch"))
	b.start()
	obj := b.create("one", nil)
	var err error
	b.Eventually(refused).Should(gomega.Receive(&err))
	var of *kopf.WriteError
	b.Expect(errors.As(err, &of)).To(gomega.BeTrue())
	b.Expect(of.Name.Name).To(gomega.Equal("one"))
	b.Expect(apierrors.IsInvalid(err)).To(gomega.BeTrue(), "%v", err)
	b.Eventually(cluster.Current(obj)).Should(testenv.HavePath("metadata.labels", map[string]any{"example.com/key": "value"}))
	b.remove(obj)
	b.expectGone(obj)
}
