package background

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/onsi/gomega"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/model/memo"
	"github.com/kopf-go/kopf/test/operators"
	"github.com/kopf-go/kopf/test/testenv"
)

// witness is referenced by everything that is kept in memory for an object: the garbage
// collector frees it only when nothing remains.
type witness struct{ name string }

// declareWitnesses declares handlers of all kinds that reference the witness.
func (b *bench) declareWitnesses(made, collected *atomic.Int64) {
	witnesses := memo.New(nil, func(*witness) *witness {
		w := &witness{}
		made.Add(1)
		runtime.AddCleanup(w, func(int) { collected.Add(1) }, 0)
		return w
	})
	remember := func(h memo.Holder) { witnesses.Of(h).name = "seen" }
	kopf.NewIndex(b.Registry, examples, func(_ context.Context, i *kopf.Indexed) (map[string]string, error) {
		return map[string]string{i.Name(): "x"}, nil
	}, kopf.ID("index"))
	b.OnEvent(examples, func(_ context.Context, e *kopf.WatchEvent) error {
		if e.Type() != "DELETED" {
			remember(e)
		}
		return nil
	}, kopf.ID("event"))
	b.OnCreate(examples, func(_ context.Context, c *kopf.Change) error { remember(c); return nil }, kopf.ID("create"))
	b.Timer(examples, b.ticking("timer", func(_ context.Context, t *kopf.Tick) error { t.SetResult(t.Name()); return nil }), kopf.ID("timer"), kopf.Interval(brief))
	b.Timer(examples, b.ticking("late", func(context.Context, *kopf.Tick) error { return nil }), kopf.ID("late"), kopf.InitialDelay(long))
	b.Daemon(examples, b.counted("daemon", func(_ context.Context, t *kopf.Task) error { <-t.Stopped(); return nil }), kopf.ID("daemon"))
	b.Daemon(examples, b.counted("retried", func(context.Context, *kopf.Task) error { return kopf.Temporary(errBroken, long) }), kopf.ID("retried"))
	b.Daemon(examples, b.counted("hung", func(ctx context.Context, _ *kopf.Task) error { <-ctx.Done(); return nil }), kopf.ID("hung"), kopf.CancellationTimeout(long))
}

// These tests are not parallel, because other tests have goroutines, too.
func TestDeletedObjectsLeaveNothingBehind(t *testing.T) {
	const objects, rounds = 100, 3
	b := newBench(t)
	var made, collected atomic.Int64
	b.declareWitnesses(&made, &collected)
	b.start(func(o *kopf.Options) { o.Settings.Networking.QPS = -1 })
	b.comeAndGo(objects) // the operator is ready before all of its workers have started
	before := operators.Goroutines()
	for range rounds - 1 {
		b.comeAndGo(objects)
	}
	// A watch may have been replaced by another one meanwhile.
	b.Eventually(func() int { return len(operators.Goroutines()) }).Should(gomega.BeNumerically("<=", len(before)), func() string {
		return strings.Join(left(before)(), "\n\n")
	})
	b.Expect(made.Load()).To(gomega.BeEquivalentTo(objects * rounds))
	b.Eventually(func() int64 {
		runtime.GC()
		return collected.Load()
	}).Should(gomega.BeEquivalentTo(objects * rounds))
}

// comeAndGo creates objects, and deletes them when all of their daemons are running.
func (b *bench) comeAndGo(objects int) {
	b.t.Helper()
	b.crowd("KopfExample", objects)
	b.Eventually(b.runs.running("daemon ")).Should(gomega.Equal(objects))
	b.Eventually(b.runs.running("hung ")).Should(gomega.Equal(objects))
	b.disperse(objects)
	b.Eventually(b.runs.running("")).Should(gomega.BeZero())
}

// disperse deletes the objects of crowd, and waits until they are gone.
func (b *bench) disperse(count int) {
	b.t.Helper()
	const clients = 10
	var running sync.WaitGroup
	for client := range clients {
		running.Go(func() {
			for i := client; i < count; i += clients {
				obj := testenv.NewObject("KopfExample", b.namespace, fmt.Sprint("object-", i), nil)
				b.remove(obj)
				b.expectGone(obj)
			}
		})
	}
	running.Wait()
}
