package handling

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/onsi/gomega"

	"github.com/kopf-go/kopf/pkg/backoff"
	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/test/testenv"
)

const long = time.Hour // too long for a test, so waiting for it fails

// fail is a handler that always fails in the same way.
func fail(err error) func(context.Context, *kopf.Change) error {
	return func(context.Context, *kopf.Change) error { return err }
}

// unless fails until the channel is closed.
func unless(closed <-chan struct{}, err error) func(context.Context, *kopf.Change) error {
	return func(context.Context, *kopf.Change) error {
		select {
		case <-closed:
			return nil
		default:
			return err
		}
	}
}

var errBroken = errors.New("broken")

func TestFailuresAreRetriedOrFinal(t *testing.T) {
	t.Parallel()
	const succeeded, failed = "Normal HandlerSucceeded: Handler create succeeded.", "Warning HandlerFailed: Handler create failed permanently: "
	limit := func(options *kopf.Options) {
		options.Settings.Execution.Backoff = backoff.Constant(20 * time.Millisecond)
	}
	tests := map[string]struct {
		handler func(context.Context, *kopf.Change) error
		options []kopf.ChangeOption
		calls   int
		event   string // of the outcome
	}{
		"a temporary error is retried": {
			failing(3, 10*time.Millisecond), nil, 4, succeeded,
		},
		"a temporary error without a delay is retried immediately": {
			failing(3, 0), []kopf.ChangeOption{kopf.Backoff(long)}, 4, succeeded,
		},
		"a temporary error is not subject to the mode of errors": {
			failing(2, 0), []kopf.ChangeOption{kopf.Errors(kopf.ErrorsPermanent)}, 3, succeeded,
		},
		"a permanent error is final": {
			fail(kopf.Permanent(errBroken)), nil, 1, failed + "broken",
		},
		"a wrapped permanent error is final": {
			fail(errors.Join(errNotYet, kopf.Permanent(errBroken))), nil, 1, failed + "not yet broken",
		},
		"a regular error is final if so declared": {
			fail(errBroken), []kopf.ChangeOption{kopf.Errors(kopf.ErrorsPermanent)}, 1, failed + "broken",
		},
		"a regular error is ignored if so declared": {
			fail(errBroken), []kopf.ChangeOption{kopf.Errors(kopf.ErrorsIgnored)}, 1, "Normal CycleFinished: The creation is processed: 1 succeeded; 0 failed.",
		},
		"a regular error is retried after the backoff of the settings, as often as allowed": {
			fail(errBroken), []kopf.ChangeOption{kopf.Retries(3)}, 3, failed + "handler create has used up its 3 attempts: broken",
		},
		"a regular error is retried after the backoff of the handler": {
			fail(errBroken),
			[]kopf.ChangeOption{kopf.Retries(2), kopf.Backoff(time.Millisecond)},
			2,
			failed + "handler create has used up its 2 attempts: broken",
		},
		"the last allowed attempt is not followed by a delay": {
			fail(errBroken),
			[]kopf.ChangeOption{kopf.Retries(1), kopf.Backoff(long)},
			1,
			failed + "handler create has used up its 1 attempts: broken",
		},
		"a regular error is retried after a growing backoff": {
			fail(errBroken),
			[]kopf.ChangeOption{kopf.Retries(4), kopf.ExponentialBackoff(10*time.Millisecond, 20*time.Millisecond)},
			4,
			failed + "handler create has used up its 4 attempts: broken",
		},
		"a delay longer than the timeout fails the handler": {
			fail(kopf.Temporary(errNotYet, long)),
			[]kopf.ChangeOption{kopf.Timeout(long - time.Minute)},
			1,
			failed + "handler create has timed out after 59m0s: not yet",
		},
		"delays shorter than the timeout are awaited": {
			fail(kopf.Temporary(errNotYet, 1600*time.Millisecond)),
			[]kopf.ChangeOption{kopf.Timeout(3 * time.Second)},
			2,
			failed + "handler create has timed out after 3s: not yet",
		},
		"a result that is not JSON is a permanent error": {
			func(_ context.Context, c *kopf.Change) error { c.SetResult(make(chan int)); return nil }, nil, 1,
			failed + "the result cannot be stored in the status: a value of type chan int cannot be expressed as JSON: json: unsupported type: chan int",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.OnCreate(examples, b.noted("create", test.handler), append(test.options, kopf.ID("create"))...)
			b.start(limit)
			obj := b.create("one", nil)
			b.expectHandled(obj)
			b.Expect(b.calls.All()).To(gomega.Equal(attempts("create", test.calls)))
			b.Eventually(cluster.Events(obj)).Should(gomega.ContainElement(test.event))
		})
	}
}

func TestDelayIsKeptAndTimesArePassed(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	type visit struct {
		at, started time.Time
		runtime     time.Duration
	}
	visits := make(chan visit, 2)
	b.OnCreate(examples, b.noted("create", func(_ context.Context, c *kopf.Change) error {
		visits <- visit{time.Now(), c.Started(), c.Runtime()}
		if c.Retry() == 0 {
			return kopf.Temporary(errNotYet, 500*time.Millisecond)
		}
		return nil
	}), kopf.ID("create"))
	b.start()
	b.expectHandled(b.create("one", nil))
	first, second := <-visits, <-visits
	b.Expect(second.at.Sub(first.at)).To(gomega.BeNumerically(">=", 500*time.Millisecond))
	b.Expect(second.started).To(gomega.Equal(first.started))
	b.Expect(first.at).To(gomega.BeTemporally("~", first.started, time.Second))
	b.Expect(second.runtime).To(gomega.BeNumerically("~", second.at.Sub(first.started), time.Second))
}

func TestTimeoutCancelsARunningHandler(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	causes := make(chan error, 1)
	b.OnCreate(examples, b.noted("create", func(ctx context.Context, _ *kopf.Change) error {
		<-ctx.Done()
		causes <- context.Cause(ctx)
		return ctx.Err()
	}), kopf.ID("create"), kopf.Timeout(300*time.Millisecond))
	b.start()
	obj := b.create("one", nil)
	b.expectHandled(obj)
	var timeout *kopf.HandlerTimeoutError
	b.Expect(errors.As(<-causes, &timeout)).To(gomega.BeTrue())
	b.Expect(b.calls.All()).To(gomega.Equal(attempts("create", 1)))
	b.Eventually(cluster.Events(obj)).Should(gomega.ContainElement(gomega.ContainSubstring("handler create has timed out after 300ms")))
}

func TestWaitingHandlerDoesNotDelayOthers(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.OnCreate(examples, b.noted("waits", fail(kopf.Temporary(errNotYet, long))), kopf.ID("waits"))
	b.OnCreate(examples, b.noted("follows", failing(2, 10*time.Millisecond)), kopf.ID("follows"))
	b.OnCreate(examples, b.noted("is_last", succeed), kopf.ID("is_last"))
	b.start()
	obj := b.create("one", nil)
	b.Eventually(b.calls.All).Should(gomega.Equal([]string{"waits 0", "follows 0", "is_last 0", "follows 1", "follows 2"}))
	b.Eventually(cluster.Current(obj)).Should(gomega.SatisfyAll(
		testenv.HaveAnnotation(prefix+"waits", gomega.ContainSubstring(`"success":false`)),
		testenv.HaveAnnotation(prefix+"follows", gomega.ContainSubstring(`"success":true`)),
		testenv.HaveAnnotation(prefix+"is_last", gomega.ContainSubstring(`"success":true`)),
		testenv.HaveAnnotation(handled, nil),
	))
	b.expectRest()
}

func TestFailingHandlerGetsTheCorrectedObject(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.OnCreate(examples, b.noted("create", func(_ context.Context, c *kopf.Change) error {
		size, ok := c.Spec().String("size")
		b.calls.Note("size %s", size)
		if !ok {
			return kopf.Temporary(errors.New("spec.size must be set"), 50*time.Millisecond)
		}
		return nil
	}), kopf.ID("create"))
	b.start()
	obj := b.create("one", nil)
	b.Eventually(func() []string { return b.calls.Of("create") }).Should(gomega.HaveLen(2))
	b.patch(obj, `{"spec":{"size":"1G"}}`)
	b.expectHandled(obj)
	b.Expect(b.calls.All()).To(gomega.ContainElement("size 1G"))
}

func TestNextChangeCallsFailedHandlersAgain(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.OnUpdate(examples, b.noted("update", fail(kopf.Permanent(errBroken))), kopf.ID("update"))
	b.start()
	obj := b.create("one", map[string]any{"field": "1"})
	b.expectHandled(obj)
	for _, value := range []string{"2", "3"} {
		b.patch(obj, `{"spec":{"field":"`+value+`"}}`)
		b.expectHandled(obj)
	}
	b.Expect(b.calls.All()).To(gomega.Equal([]string{"update 0", "update 0"}))
}
