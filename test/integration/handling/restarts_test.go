package handling

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/test/testenv"
)

// kopfTime formats a time like Kopf.
func kopfTime(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000000+00:00") }

// begun contains two records of an open cycle as Kopf leaves them: one of a handler that has
// succeeded, and one of a handler whose third attempt is due.
func begun(purpose string, started, delayed time.Time) (done, waiting string) {
	done = fmt.Sprintf(`{"started":%q,"stopped":%q,"purpose":%q,"retries":1,"success":true,"failure":false}`,
		kopfTime(started), kopfTime(started), purpose)
	waiting = fmt.Sprintf(`{"started":%q,"delayed":%q,"purpose":%q,"retries":2,"success":false,"failure":false,"message":"not yet"}`,
		kopfTime(started), kopfTime(delayed), purpose)
	return done, waiting
}

// continued checks that the handler's attempts continue.
func (b *bench) continued(id string, started, delayed time.Time) func(context.Context, *kopf.Change) error {
	return b.noted(id, func(_ context.Context, c *kopf.Change) error {
		if now := time.Now(); now.Before(delayed) {
			b.calls.Note("too early: %s instead of %s", now, delayed)
		}
		if !c.Started().Equal(started) {
			b.calls.Note("started %s instead of %s", c.Started(), started)
		}
		return nil
	})
}

func TestCreationBegunByKopfIsContinued(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	started := time.Now().UTC().Add(-time.Hour).Truncate(time.Microsecond)
	delayed := time.Now().UTC().Add(700 * time.Millisecond).Truncate(time.Microsecond)
	done, waiting := begun("create", started, delayed)
	obj := testenv.NewObject("KopfExample", b.namespace, "one", map[string]any{"field": "1"})
	obj.SetAnnotations(map[string]string{
		prefix + "done": done, prefix + "waiting": waiting,
		prefix + "parent":      strings.Replace(waiting, "{", `{"subrefs":["parent/done","parent/waiting"],`, 1),
		prefix + "parent.done": done, prefix + "parent.waiting": waiting,
	})
	b.submit(obj)
	b.OnCreate(examples, b.noted("done", succeed), kopf.ID("done"))
	b.OnCreate(examples, b.continued("waiting", started, delayed), kopf.ID("waiting"))
	b.OnCreate(examples, b.noted("parent", func(_ context.Context, c *kopf.Change) error {
		c.Subhandler("done", b.noted("parent/done", succeed))
		c.Subhandler("waiting", b.continued("parent/waiting", started, delayed))
		return nil
	}), kopf.ID("parent"))
	b.start()
	b.expectHandled(obj)
	b.Expect(b.calls.Of("done")).To(gomega.BeEmpty())
	b.Expect(b.calls.Of("waiting")).To(gomega.Equal([]string{"waiting 2"}))
	b.Expect(b.calls.Of("parent")[0]).To(gomega.Equal("parent 2"))
	b.Expect(b.calls.Of("parent/done")).To(gomega.BeEmpty())
	b.Expect(b.calls.Of("parent/waiting")).To(gomega.Equal([]string{"parent/waiting 2"}))
	b.Expect(b.calls.Of("too")).To(gomega.BeEmpty())
	b.Expect(b.calls.Of("started")).To(gomega.BeEmpty())
}

func TestUpdateBegunByKopfIsContinued(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	started := time.Now().UTC().Add(-time.Hour).Truncate(time.Microsecond)
	delayed := time.Now().UTC().Add(300 * time.Millisecond).Truncate(time.Microsecond)
	done, waiting := begun("update", started, delayed)
	obj := testenv.NewObject("KopfExample", b.namespace, "one", map[string]any{"field": "2"})
	obj.SetAnnotations(map[string]string{
		prefix + "done": done, prefix + "waiting": waiting,
		handled: `{"spec": {"field": "1"}}` + "\n",
	})
	b.submit(obj)
	b.OnUpdate(examples, b.noted("done", succeed), kopf.ID("done"))
	b.OnUpdate(examples, b.seeing("sees", b.continued("waiting", started, delayed)), kopf.ID("waiting"))
	b.start()
	b.expectHandled(obj)
	b.Expect(b.calls.All()).To(gomega.Equal([]string{"sees 1->2", "waiting 2"}))
}

func TestDeletionBegunByKopfIsContinued(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	started := time.Now().UTC().Add(-time.Hour).Truncate(time.Microsecond)
	delayed := time.Now().UTC().Add(300 * time.Millisecond).Truncate(time.Microsecond)
	done, waiting := begun("delete", started, delayed)
	obj := testenv.NewObject("KopfExample", b.namespace, "one", map[string]any{"field": "1"})
	obj.SetFinalizers([]string{finalizer})
	obj.SetAnnotations(map[string]string{
		prefix + "done": done, prefix + "waiting": waiting, handled: `{"spec": {"field": "1"}}` + "\n",
	})
	b.remove(b.submit(obj))
	b.OnDelete(examples, b.noted("done", succeed), kopf.ID("done"))
	b.OnDelete(examples, b.continued("waiting", started, delayed), kopf.ID("waiting"))
	b.start()
	b.expectGone(obj)
	b.Expect(b.calls.All()).To(gomega.Equal([]string{"waiting 2"}))
}

// Older operators stored the progress in the status.
func TestProgressInTheStatusIsContinuedAndRemoved(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	obj := b.create("one", nil)
	b.patchStatus(obj, `{"status":{"kept":1,"kopf":{"progress":{
		"done":{"started":"2020-01-01T00:00:00","purpose":"create","retries":1,"success":true,"failure":false},
		"waiting":{"started":"2020-01-01T00:00:00","purpose":"create","retries":4,"success":false,"failure":false}}}}}`)
	b.OnCreate(examples, b.noted("done", succeed), kopf.ID("done"))
	b.OnCreate(examples, b.noted("waiting", succeed), kopf.ID("waiting"))
	b.start()
	b.expectHandled(obj)
	b.Expect(b.calls.All()).To(gomega.Equal([]string{"waiting 4"}))
	status := func() map[string]any {
		status, _ := b.current(obj).Object["status"].(map[string]any)
		return status
	}
	// Records in the status are written last, after what makes the object handled.
	b.Eventually(func() string { return fmt.Sprint(status()["kopf"]) }).ShouldNot(gomega.ContainSubstring("waiting"))
	b.Expect(status()).To(gomega.HaveKeyWithValue("kept", int64(1)))
}

func TestRestartContinuesAnOpenCycle(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.OnCreate(examples, b.noted("quick", succeed), kopf.ID("quick"))
	b.OnCreate(examples, b.noted("retried", failing(3, 300*time.Millisecond)), kopf.ID("retried"))
	b.OnCreate(examples, b.noted("parent", func(_ context.Context, c *kopf.Change) error {
		c.Subhandler("quick", b.noted("parent/quick", succeed))
		c.Subhandler("retried", b.noted("parent/retried", failing(3, 300*time.Millisecond)))
		return nil
	}), kopf.ID("parent"))
	obj := b.create("one", nil)
	for range 2 {
		operator := b.start()
		before := len(b.calls.Of("retried"))
		b.Eventually(func() int { return len(b.calls.Of("retried")) }).Should(gomega.BeNumerically(">", before))
		operator.Stop()
	}
	b.start()
	b.expectHandled(obj)
	b.Expect(b.calls.Of("quick")).To(gomega.Equal(attempts("quick", 1)))
	b.Expect(b.calls.Of("retried")).To(gomega.Equal(attempts("retried", 4)))
	b.Expect(b.calls.Of("parent/quick")).To(gomega.Equal(attempts("parent/quick", 1)))
	b.Expect(b.calls.Of("parent/retried")).To(gomega.Equal(attempts("parent/retried", 4)))
}

func TestRestartRemembersWhereEachHandlerHasEnded(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		prepare func(b *bench) *unstructured.Unstructured
		calls   []string
	}{
		"a creation": {
			func(b *bench) *unstructured.Unstructured { return b.create("one", map[string]any{"field": "2"}) },
			[]string{"quick (absent)->2", "slow (absent)->2", "slow (absent)->3", "quick 2->3"},
		},
		"an update": {
			func(b *bench) *unstructured.Unstructured {
				obj := testenv.NewObject("KopfExample", b.namespace, "one", map[string]any{"field": "2"})
				obj.SetAnnotations(map[string]string{handled: `{"spec": {"field": "1"}}`})
				return b.submit(obj)
			},
			[]string{"quick 1->2", "slow 1->2", "slow 1->3", "quick 2->3"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			for _, id := range []string{"quick", "slow"} {
				b.OnField(examples, "spec.field", func(_ context.Context, c *kopf.Change) error {
					b.calls.Note("%s %s->%s", id, c.Old(), c.New())
					if id == "slow" && c.New().String() == "2" {
						return kopf.Temporary(errNotYet, quiet)
					}
					return nil
				}, kopf.ID(id))
			}
			obj := test.prepare(b)
			operator := b.start()
			b.Eventually(cluster.Current(obj)).Should(testenv.HaveAnnotation(handled+"-started", gomega.ContainSubstring(`"2"`)))
			operator.Stop()
			b.setField(obj, "3")
			b.start()
			b.expectHandled(obj)
			b.expectRest()
			b.Expect(slices.Compact(b.calls.All())).To(gomega.Equal(test.calls))
		})
	}
}

func TestRecordsOfEndedCyclesAreRemoved(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	obj := testenv.NewObject("KopfExample", b.namespace, "one", map[string]any{"field": "1"})
	done, waiting := begun("update", time.Now().Add(-long), time.Now().Add(long))
	waiting = strings.Replace(waiting, `"retries":2`, `"retries":0`, 1) // it was never called
	obj.SetAnnotations(map[string]string{handled: `{"spec":{"field":"1"}}`, prefix + "done": done, prefix + "waiting": waiting})
	b.submit(obj)
	b.OnUpdate(examples, b.noted("done", succeed), kopf.ID("done"))
	b.OnUpdate(examples, b.noted("waiting", succeed), kopf.ID("waiting"))
	b.start()
	b.expectHandled(obj)
	b.expectRest()
	b.Expect(b.calls.All()).To(gomega.BeEmpty())
}
