package handling

import (
	"context"
	"testing"
	"time"

	"github.com/onsi/gomega"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/test/operators"
	"github.com/kopf-go/kopf/test/testenv"
)

// This test is not parallel, because other tests have goroutines, too.
func TestStoppedOperatorLeavesNothingBehind(t *testing.T) {
	b := newBench(t)
	b.OnCreate(examples, b.noted("create", fail(kopf.Temporary(errNotYet, long))), kopf.ID("create"))
	b.OnEvent(examples, ignore, kopf.ID("event"))
	b.OnDelete(noStatuses, succeed)
	before := operators.Goroutines()
	operator := b.start()
	b.create("one", nil)
	b.submit(testenv.NewObject("KopfNoStatus", b.namespace, "one", nil))
	b.Eventually(b.calls.All).ShouldNot(gomega.BeEmpty())
	b.Expect(len(operators.Goroutines())).To(gomega.BeNumerically(">", len(before)))
	operator.Stop()
	b.Eventually(func() []string {
		var left []string
		for number, stack := range operators.Goroutines() {
			if _, there := before[number]; !there {
				left = append(left, stack)
			}
		}
		return left
	}, "2s").Should(gomega.BeEmpty())
}

// run runs an operator until the returned function is called, which waits for its end and
// returns its error.
func (b *bench) run(settings kopf.Settings) (stop func() error) {
	b.t.Helper()
	settings.Scope.Namespaces = []string{b.namespace}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	operator, err := kopf.NewOperator(kopf.Options{Registry: b.Registry, Config: b.config, Settings: settings, Logger: b.logs.Logger()})
	b.Expect(err).NotTo(gomega.HaveOccurred())
	go func() { done <- operator.Run(ctx) }()
	b.t.Cleanup(cancel)
	b.Eventually(operator.Ready()).Should(gomega.BeClosed())
	return func() error {
		cancel()
		return <-done
	}
}

func TestRunReturnsNilWhenStopped(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.OnCreate(examples, b.noted("create", succeed), kopf.ID("create"))
	b.Expect(b.run(kopf.Settings{})()).To(gomega.Succeed())

	stopped, cancel := context.WithCancel(t.Context())
	cancel()
	b.Expect(kopf.Run(stopped, kopf.Options{Registry: b.Registry, Config: b.config})).To(gomega.Succeed(), "before it is ready")
}

func TestRunReturnsStartupErrors(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.OnCreate(examples, b.noted("create", succeed), kopf.ID("create"))
	b.config.Host = "https://127.0.0.1:1"
	options := kopf.Options{Registry: b.Registry, Config: b.config}
	options.Settings.Networking.StartTimeout = time.Second
	err := kopf.Run(t.Context(), options)
	b.Expect(err).To(gomega.MatchError(gomega.SatisfyAll(gomega.ContainSubstring("resources"), gomega.ContainSubstring("127.0.0.1:1"))))
}

func TestRunningHandlerFinishesWithinTheGracePeriod(t *testing.T) {
	t.Parallel()
	b, g := newBench(t), newGate()
	b.OnCreate(examples, b.noted("running", func(ctx context.Context, c *kopf.Change) error {
		g.pass()
		c.SetResult("kept")
		return ctx.Err()
	}), kopf.ID("running"))
	b.OnCreate(examples, b.noted("next", succeed), kopf.ID("next"))
	stop := b.run(kopf.Settings{})
	obj := b.create("one", nil)
	<-g.entered
	time.AfterFunc(quiet, func() { close(g.opened) })
	b.Expect(stop()).To(gomega.Succeed())
	b.Expect(b.calls.All()).To(gomega.Equal([]string{"running 0"}))
	b.Expect(b.current(obj)).To(gomega.SatisfyAll(
		testenv.HavePath("status.running", "kept"),
		testenv.HaveAnnotation(prefix+"running", gomega.ContainSubstring(`"success":true`)),
		testenv.HaveAnnotation(handled, nil)))

	b.start()
	b.expectHandled(obj)
	b.Expect(b.calls.All()).To(gomega.Equal([]string{"running 0", "next 0"}))
}

func TestRunningHandlerIsCanceledAfterTheGracePeriod(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	entered := make(chan struct{})
	b.OnCreate(examples, b.noted("done", returning("kept")), kopf.ID("done"))
	b.OnCreate(examples, b.noted("cut", func(ctx context.Context, c *kopf.Change) error {
		select {
		case <-entered:
			return nil
		default:
		}
		close(entered)
		c.SetResult("lost")
		c.Patch().SetLabel("lost", "yes")
		<-ctx.Done()
		return ctx.Err()
	}), kopf.ID("cut"))
	settings := kopf.Settings{}
	settings.Execution.GracePeriod = quiet
	stop := b.run(settings)
	obj := b.create("one", nil)
	<-entered
	started := time.Now()
	b.Expect(stop()).To(gomega.Succeed())
	b.Expect(time.Since(started)).To(gomega.BeNumerically(">=", quiet/2), "the rest of a short grace period is for the writes")
	b.Expect(b.current(obj)).To(gomega.SatisfyAll(
		testenv.HavePath("status", map[string]any{"done": "kept"}), testenv.HavePath("metadata.labels", nil),
		testenv.HaveAnnotation(prefix+"done", gomega.ContainSubstring(`"success":true`))))

	b.start()
	b.expectHandled(obj)
	b.Expect(b.calls.All()).To(gomega.Equal([]string{"done 0", "cut 0", "cut 0"}), "an attempt that was cut short does not count")
}

// Code that ignores its context cannot be stopped, but the process ends.
func TestHandlerThatIgnoresItsContextIsAbandoned(t *testing.T) {
	t.Parallel()
	b, g := newBench(t), newGate()
	b.OnCreate(examples, b.noted("create", func(context.Context, *kopf.Change) error { g.pass(); return nil }), kopf.ID("create"))
	settings := kopf.Settings{}
	settings.Execution.GracePeriod = quiet
	stop := b.run(settings)
	b.create("one", nil)
	<-g.entered
	b.Expect(stop()).To(gomega.MatchError(gomega.ContainSubstring("grace period")))
	close(g.opened)
}

func TestWaitingObjectDoesNotDelayShutdown(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.OnCreate(examples, b.noted("create", fail(kopf.Temporary(errNotYet, long))), kopf.ID("create"))
	stop := b.run(kopf.Settings{})
	obj := b.create("one", nil)
	b.Eventually(cluster.Current(obj)).Should(testenv.HaveAnnotation(prefix+"create", gomega.ContainSubstring("delayed")))
	started := time.Now()
	b.Expect(stop()).To(gomega.Succeed())
	b.Expect(time.Since(started)).To(gomega.BeNumerically("<", 5*time.Second))
}

// Several operators run in one process, each with its own handlers.
func TestOperatorsShareNothing(t *testing.T) {
	t.Parallel()
	one, two := newBench(t), newBench(t)
	one.OnCreate(examples, one.noted("one", succeed), kopf.ID("create"))
	two.OnCreate(examples, two.noted("two", succeed), kopf.ID("create"))
	first := one.start()
	two.start()
	one.expectHandled(one.create("one", nil))
	first.Stop()
	two.expectHandled(two.create("one", nil))
	one.Expect(one.calls.All()).To(gomega.Equal([]string{"one 0"}))
	two.Expect(two.calls.All()).To(gomega.Equal([]string{"two 0"}))
}
