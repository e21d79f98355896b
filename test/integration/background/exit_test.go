package background

import (
	"context"
	"fmt"
	"testing"

	"github.com/onsi/gomega"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/test/operators"
	"github.com/kopf-go/kopf/test/testenv"
)

// left returns the new goroutines since the start, for Eventually.
func left(before map[string]string) func() []string {
	return func() []string {
		var left []string
		for number, stack := range operators.Goroutines() {
			if _, there := before[number]; !there {
				left = append(left, stack)
			}
		}
		return left
	}
}

// stopping contains daemons that stop in different ways, all of them in time.
func (b *bench) stopping() map[string]func(context.Context, *kopf.Task) error {
	return map[string]func(context.Context, *kopf.Task) error{
		"selects": b.untilStopped,
		"waits": func(_ context.Context, t *kopf.Task) error {
			for !t.Wait(brief) {
			}
			return nil
		},
		"is-cut-off": func(ctx context.Context, _ *kopf.Task) error { <-ctx.Done(); return ctx.Err() },
		"tells": func(_ context.Context, t *kopf.Task) error {
			<-t.Stopped()
			t.SetResult("stopped")
			return nil
		},
		"changes": func(_ context.Context, t *kopf.Task) error {
			<-t.Stopped()
			t.Patch().SetLabel("stopped", "yes")
			return nil
		},
	}
}

// accompany declares all of them, and starts an operator.
func (b *bench) accompany() *operators.Operator {
	b.t.Helper()
	for id, fn := range b.stopping() {
		options := []kopf.BackgroundOption{kopf.ID(id)}
		if id == "is-cut-off" {
			options = append(options, kopf.CancellationTimeout(long))
		}
		b.Daemon(examples, b.counted(id, fn), options...)
	}
	b.Timer(examples, b.ticking("timer", func(context.Context, *kopf.Tick) error { return nil }), kopf.ID("timer"), kopf.Interval(brief), kopf.Sharp())
	return b.start(func(o *kopf.Options) { o.Settings.Networking.QPS = -1 })
}

// This test is not parallel, because other tests have goroutines, too.
func TestManyDaemonsStopWithTheirOperator(t *testing.T) {
	const objects = 100 // of five daemons each
	b := newBench(t)
	before := operators.Goroutines()
	operator := b.accompany()
	b.crowd("KopfExample", objects)
	b.Eventually(b.runs.running("")).Should(gomega.BeNumerically(">=", 5*objects))
	operator.Stop() // fails if it does not stop in time
	b.Expect(b.runs.running("")()).To(gomega.BeZero())
	b.Expect(b.logs.With("has not returned in time")).To(gomega.BeEmpty())
	b.Expect(b.logs.With("failed")).To(gomega.BeEmpty())
	b.Expect(b.calls.All()).To(gomega.HaveLen(objects))
	b.Expect(b.calls.All()).To(gomega.HaveEach(gomega.HaveSuffix("exiting|signaled")))
	for i := range objects {
		b.Expect(b.current(testenv.NewObject("KopfExample", b.namespace, fmt.Sprint("object-", i), nil))).To(gomega.SatisfyAll(
			testenv.HaveFinalizer(finalizer), testenv.HavePath("status.tells", "stopped"), testenv.HavePath("metadata.labels.stopped", "yes")))
	}
	b.Eventually(left(before)).Should(gomega.BeEmpty())
}
