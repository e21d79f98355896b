package handling

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/test/testenv"
)

// idleTime is longer than a few requests take.
const idleTime = 2 * time.Second

// idler notes the calls of handlers that wait for an idle object.
type idler struct {
	*bench
	mu    sync.Mutex
	calls []string
	at    []time.Time
}

func (i *idler) handle(_ context.Context, c *kopf.Change) error {
	before, _ := c.Old().View().Int64("spec", "number")
	now, _ := c.New().View().Int64("spec", "number")
	i.mu.Lock()
	defer i.mu.Unlock()
	i.calls = append(i.calls, fmt.Sprintf("%s of %s from %d to %d", c.Reason(), c.Name(), before, now))
	i.at = append(i.at, time.Now())
	return nil
}

// isCalled returns when a call was made, for Eventually: zero if it was not.
func (i *idler) isCalled(call string) func() time.Time {
	return func() time.Time {
		i.mu.Lock()
		defer i.mu.Unlock()
		n := slices.Index(i.calls, call)
		if n < 0 {
			return time.Time{}
		}
		return i.at[n]
	}
}

// burst creates an object, or changes it, and changes it twice more. It returns when the last change began. A slow machine
// can make the object idle in between: then it fails.
func (i *idler) burst(obj *unstructured.Unstructured, begin func(), last int) (changed time.Time, ok bool) {
	i.t.Helper()
	begin()
	ok = true
	for n := last - 1; n <= last; n++ {
		before := time.Now()
		i.patch(obj, fmt.Sprintf(`{"spec":{"number":%d}}`, n))
		ok = ok && time.Since(before) < idleTime/4
		changed = before
	}
	return changed, ok
}

// expectCall expects a call when the object is idle, and no other one for the object.
func (i *idler) expectCall(call string, changed time.Time) {
	i.t.Helper()
	i.Eventually(i.isCalled(call)).ShouldNot(gomega.BeZero(), func() string { return i.logs.String() })
	i.Expect(i.isCalled(call)().Sub(changed)).To(gomega.BeNumerically(">=", idleTime))
}

// A creation and an update are handled when the object is idle, with all that has changed meanwhile. Only the end is
// written.
func TestHandlersWaitUntilTheirObjectIsIdle(t *testing.T) {
	t.Parallel()
	b := &idler{bench: newBench(t)}
	b.OnCreate(examples, b.handle, kopf.ID("idle"), kopf.Idle(idleTime))
	b.OnUpdate(examples, b.handle, kopf.ID("idle"), kopf.Idle(idleTime))
	b.start()
	for n := range 5 {
		b.requests.Reset()
		name := fmt.Sprintf("object-%d", n)
		obj := testenv.NewObject("KopfExample", b.namespace, name, map[string]any{"number": int64(1)})
		changed, isFast := b.burst(obj, func() { b.submit(obj) }, 3)
		if !isFast {
			continue
		}
		b.expectCall("create of "+name+" from 0 to 3", changed)
		b.expectHandled(obj)
		b.expectRest()
		b.Expect(b.requests.Snapshot().Writes("kopfexamples")).To(gomega.Equal(1), b.requests.String)

		changed, isFast = b.burst(obj, func() { b.patch(obj, `{"spec":{"number":4}}`) }, 6)
		if !isFast {
			continue
		}
		b.expectCall("update of "+name+" from 3 to 6", changed)
		b.expectHandled(obj)
		b.expectRest()
		b.Expect(b.requests.Snapshot().Writes("kopfexamples")).To(gomega.Equal(2), b.requests.String)
		return
	}
	t.Error("the machine is too slow")
}

// A function of children waits until its object is idle. A deletion does not wait.
func TestChildrenWaitUntilTheirObjectIsIdle(t *testing.T) {
	t.Parallel()
	b := &idler{bench: newBench(t)}
	b.Ensure(examples, func(ctx context.Context, c *kopf.Change) ([]client.Object, error) {
		child := &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: metav1.ObjectMeta{Name: c.Name()}}
		return []client.Object{child}, b.handle(ctx, c)
	}, kopf.ID("children"), kopf.Idle(idleTime))
	b.start(func(o *kopf.Options) { o.Settings.Name = "idle" })
	for n := range 5 {
		name := fmt.Sprintf("object-%d", n)
		obj := testenv.NewObject("KopfExample", b.namespace, name, map[string]any{"number": int64(1)})
		changed, isFast := b.burst(obj, func() { b.submit(obj) }, 3)
		if !isFast {
			continue
		}
		child := testenv.NewObject("ConfigMap", b.namespace, name, nil)
		child.SetAPIVersion("v1")
		b.Eventually(cluster.Exists(child)).Should(gomega.BeTrue())
		b.expectCall("create of "+name+" from 0 to 3", changed)
		b.expectRest()
		b.patch(obj, `{"spec":{"number":4}}`)
		b.remove(obj)
		b.expectGone(obj)
		return
	}
	t.Error("the machine is too slow")
}
