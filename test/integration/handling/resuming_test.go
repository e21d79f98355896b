package handling

import (
	"testing"
	"time"

	"github.com/onsi/gomega"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/test/testenv"
)

func TestResumingHandlersAreCalledOnceAnObjectAndOperator(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.OnCreate(examples, succeed)
	b.OnUpdate(examples, b.noted("update", succeed), kopf.ID("update"))
	b.OnResume(examples, b.noted("resume", failing(2, 50*time.Millisecond)), kopf.ID("resume"))
	operator := b.start()
	obj := b.withFieldOne()
	b.expectRest()
	b.Expect(b.calls.All()).To(gomega.BeEmpty(), "the object is younger than the operator")
	operator.Stop()

	operator = b.start()
	b.Eventually(b.calls.All).Should(gomega.Equal(attempts("resume", 3)))
	b.expectHandled(obj)
	b.setField(obj, "2")
	b.expectHandled(obj)
	b.expectRest()
	b.Expect(b.calls.All()).To(gomega.Equal(append(attempts("resume", 3), "update 0")))
	operator.Stop()

	b.start()
	b.Eventually(b.calls.All).Should(gomega.HaveLen(7))
	b.expectHandled(obj)
}

func TestResumingHandlersAreMixedIntoAnUpdate(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	obj := testenv.NewObject("KopfExample", b.namespace, "one", map[string]any{"field": "2"})
	obj.SetAnnotations(map[string]string{handled: `{"spec":{"field":"1"}}`})
	b.submit(obj)
	b.OnUpdate(examples, b.noted("first", succeed), kopf.ID("first"))
	b.OnResume(examples, b.noted("resume", failing(1, 50*time.Millisecond)), kopf.ID("resume"))
	b.OnUpdate(examples, b.noted("last", failing(2, 50*time.Millisecond)), kopf.ID("last"))
	b.start()
	b.expectHandled(obj)
	b.expectRest()
	b.Expect(b.calls.All()[:3]).To(gomega.Equal([]string{"first 0", "resume 0", "last 0"}))
	b.Expect(b.calls.Of("first")).To(gomega.Equal(attempts("first", 1)))
	b.Expect(b.calls.Of("resume")).To(gomega.Equal(attempts("resume", 2)))
	b.Expect(b.calls.Of("last")).To(gomega.Equal(attempts("last", 3)))
}

// Nobody has handled the object before: there is nothing to resume.
func TestResumingHandlersAreNotCalledForACreation(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	obj := b.create("one", nil)
	b.OnCreate(examples, b.noted("create", succeed), kopf.ID("create"))
	b.OnResume(examples, b.noted("resume", succeed), kopf.ID("resume"))
	b.start()
	b.expectHandled(obj)
	b.expectRest()
	b.Expect(b.calls.All()).To(gomega.Equal([]string{"create 0"}))
}

func TestOneFunctionForCreationsAndResuming(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	fn := b.noted("fn", succeed)
	b.OnResume(examples, fn, kopf.ID("fn"))
	b.OnCreate(examples, fn, kopf.ID("fn"))
	b.OnUpdate(examples, fn, kopf.ID("fn"))
	before := b.create("before", nil)
	operator := b.start()
	b.expectHandled(before)
	after := b.create("after", nil)
	b.expectHandled(after)
	b.expectRest()
	b.Expect(b.calls.All()).To(gomega.HaveLen(2), "once an object")
	operator.Stop()
	b.patch(after, `{"spec":{"field":"x"}}`)

	b.start()
	b.expectHandled(after)
	b.Eventually(b.calls.All).Should(gomega.HaveLen(4), "once an object, resumed or updated")
	b.expectRest()
	b.Expect(b.calls.All()).To(gomega.HaveLen(4))
}

func TestResumingHandlersAndDeletions(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	obj := testenv.NewObject("KopfExample", b.namespace, "one", nil)
	obj.SetFinalizers([]string{finalizer})
	obj.SetAnnotations(map[string]string{handled: `{}`})
	b.remove(b.submit(obj))
	b.OnResume(examples, b.noted("resume", succeed), kopf.ID("resume"))
	b.OnResume(examples, b.noted("deleted", failing(1, 50*time.Millisecond)), kopf.ID("deleted"), kopf.Deleted())
	b.OnDelete(examples, b.noted("delete", succeed), kopf.ID("delete"))
	b.start()
	b.expectGone(obj)
	b.Expect(b.calls.All()).To(gomega.Equal([]string{"deleted 0", "delete 0", "deleted 1"}))
}

func TestAResumingThatIsInterruptedByAChange(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	obj := testenv.NewObject("KopfExample", b.namespace, "one", map[string]any{"field": "1"})
	obj.SetAnnotations(map[string]string{handled: `{"spec":{"field":"1"}}`})
	b.submit(obj)
	b.OnResume(examples, b.noted("done", succeed), kopf.ID("done"))
	b.OnResume(examples, b.noted("waiting", failing(2, 500*time.Millisecond)), kopf.ID("waiting"))
	b.OnUpdate(examples, b.seeing("update", succeed), kopf.ID("update"))
	b.start()
	b.Eventually(cluster.Current(obj)).Should(testenv.HaveAnnotation(prefix+"waiting", gomega.ContainSubstring("delayed")))
	b.setField(obj, "2")
	b.expectHandled(obj)
	b.expectRest()
	b.Expect(b.calls.Of("done")).To(gomega.Equal(attempts("done", 1)))
	b.Expect(b.calls.Of("waiting")).To(gomega.Equal(attempts("waiting", 3)))
	b.Expect(b.calls.Of("update")).To(gomega.Equal([]string{"update 1->2"}))
}
