package handling

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/onsi/gomega"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/test/testenv"
)

func TestResumeHandlersAreCalledOncePerObjectAndOperator(t *testing.T) {
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

func TestResumeHandlersAreCalledDuringAnUpdate(t *testing.T) {
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

// No operator has handled the object before, so there is nothing to resume.
func TestResumeHandlersAreNotCalledForACreation(t *testing.T) {
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

func TestFunctionForCreationAndResumeIsCalledOnce(t *testing.T) {
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

func TestResumeHandlersAndDeletions(t *testing.T) {
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

func TestResumeInterruptedByAChangeIsFinished(t *testing.T) {
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

// A function that has finished for the resumption must also see the change.
func TestFunctionForResumptionAndUpdateSeesAChangeDuringTheResumption(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	obj := testenv.NewObject("KopfExample", b.namespace, "one", map[string]any{"field": "1"})
	obj.SetAnnotations(map[string]string{handled: `{"spec":{"field":"1"}}`})
	b.submit(obj)
	fn := b.seeing("fn", succeed)
	b.OnResume(examples, fn, kopf.ID("fn"))
	b.OnResume(examples, b.noted("waiting", failing(2, 500*time.Millisecond)), kopf.ID("waiting"))
	b.OnUpdate(examples, fn, kopf.ID("fn"))
	b.start()
	b.Eventually(cluster.Current(obj)).Should(testenv.HaveAnnotation(prefix+"waiting", gomega.ContainSubstring("delayed")))
	b.setField(obj, "2")
	b.expectHandled(obj)
	b.expectRest()
	b.Expect(b.calls.Of("fn")).To(gomega.Equal([]string{"fn no change", "fn 1->2"}))
	b.Expect(b.calls.Of("waiting")).To(gomega.Equal(attempts("waiting", 3)))
}

// A handler that finishes during shutdown ends the cycle as usual; the next operator resumes.
func TestCycleCanEndDuringShutdown(t *testing.T) {
	t.Parallel()
	b, g := newBench(t), newGate()
	b.OnCreate(examples, b.noted("create", func(context.Context, *kopf.Change) error { g.pass(); return nil }), kopf.ID("create"))
	b.OnResume(examples, b.noted("resume", succeed), kopf.ID("resume"))
	stop := b.run(kopf.Settings{})
	obj := b.create("one", nil)
	<-g.entered
	time.AfterFunc(quiet, func() { close(g.opened) })
	b.Expect(stop()).To(gomega.Succeed())
	b.Expect(b.current(obj)).To(testenv.HaveAnnotation(handled, gomega.Not(gomega.BeEmpty())))
	b.start()
	b.Eventually(b.calls.All).Should(gomega.Equal([]string{"create 0", "resume 0"}))
}

// Work that an earlier process has recorded is not repeated. But its memory is lost, so resume
// handlers are called after the cycle, unless this process has called them during the cycle.
func TestCycleOfAnEarlierOperatorIsResumed(t *testing.T) {
	t.Parallel()
	const begun = `{"started":"2020-12-31T23:59:59.000000+00:00","purpose":"create","retries":1,"success":%s,"failure":false}`
	tests := map[string]struct {
		first, second string // whether they succeeded
		want          []string
	}{
		"no handler is left":     {"true", "true", []string{"first 0", "second 0", "resume 0"}},
		"the second one is left": {"true", "false", []string{"second 1", "first 0", "resume 0"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			obj := testenv.NewObject("KopfExample", b.namespace, "one", nil)
			obj.SetAnnotations(map[string]string{
				prefix + "first": fmt.Sprintf(begun, test.first), prefix + "second": fmt.Sprintf(begun, test.second),
			})
			b.submit(obj)
			for _, id := range []string{"first", "second"} {
				fn := b.noted(id, succeed)
				b.OnCreate(examples, fn, kopf.ID(id))
				b.OnResume(examples, fn, kopf.ID(id))
			}
			b.OnResume(examples, b.noted("resume", succeed), kopf.ID("resume"))
			operator := b.start()
			b.Eventually(b.calls.All).Should(gomega.Equal(test.want))
			b.expectHandled(obj)
			b.expectRest()
			b.Expect(b.calls.All()).To(gomega.Equal(test.want))
			operator.Stop()
			b.start()
			b.Eventually(b.calls.All).Should(gomega.HaveLen(len(test.want) + 3))
		})
	}
}
