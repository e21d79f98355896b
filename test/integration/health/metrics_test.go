package health

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/test/operators"
	"github.com/kopf-go/kopf/test/testenv"
)

// declareAll declares one handler of each kind. Some of them fail, with the canary in
// their errors.
func declareAll(registry *kopf.Registry) (calls *atomic.Int32) {
	calls = &atomic.Int32{}
	failure := errors.New("the password is " + canary)
	registry.OnCreate(examples, func(_ context.Context, c *kopf.Change) error {
		if c.Retry() < 2 {
			return kopf.Temporary(failure, time.Millisecond)
		}
		c.SetResult(canary)
		return nil
	}, kopf.ID("retried"))
	registry.OnCreate(examples, func(context.Context, *kopf.Change) error { return kopf.Permanent(failure) }, kopf.ID("failing"))
	registry.OnCreate(examples, func(context.Context, *kopf.Change) error { return failure }, kopf.ID("ignoring"), kopf.Errors(kopf.ErrorsIgnored))
	registry.OnCreate(examples, func(_ context.Context, c *kopf.Change) error {
		for _, item := range []string{"item-of-one", "item-of-two"} {
			c.Subhandler(item, succeed)
		}
		return nil
	}, kopf.ID("parent"))
	registry.OnDelete(examples, succeed, kopf.ID("remove"))
	registry.OnEvent(examples, func(_ context.Context, e *kopf.WatchEvent) error { return failure }, kopf.ID("event"))
	kopf.NewIndex(registry, examples, func(_ context.Context, i *kopf.Indexed) (map[string]string, error) {
		return map[string]string{i.Name(): canary}, nil
	}, kopf.ID("index"))
	registry.Timer(examples, func(context.Context, *kopf.Tick) error { calls.Add(1); return nil }, kopf.ID("timer"), kopf.Interval(time.Hour))
	registry.Daemon(examples, func(_ context.Context, t *kopf.Task) error {
		calls.Add(1)
		<-t.Stopped()
		return nil
	}, kopf.ID("daemon"))
	return calls
}

// live creates an object, waits until it is handled, and deletes it.
func live(t *testing.T, g *gomega.WithT, namespace, name string, alive func()) {
	object := testenv.NewObject("KopfExample", namespace, name, map[string]any{"field": canary})
	g.Expect(cluster.Client().Create(t.Context(), object)).To(gomega.Succeed())
	g.Eventually(cluster.Current(object)).Should(testenv.HaveAnnotation("kopf.zalando.org/last-handled-configuration", gomega.ContainSubstring(canary)))
	alive()
	g.Expect(cluster.Client().Delete(t.Context(), object)).To(gomega.Succeed())
	g.Eventually(cluster.Exists(object)).Should(gomega.BeFalse())
}

func TestMetricsCountHandlerCalls(t *testing.T) {
	t.Parallel()
	g, registry, namespace := gomega.NewWithT(t), kopf.NewRegistry(), cluster.Namespace(t)
	calls := declareAll(registry)
	health, counted := testenv.FreeAddress(t), testenv.FreeAddress(t)
	operators.Start(t, cluster.Config(), namespace, registry, func(o *kopf.Options) {
		o.Settings.Health.Address, o.Settings.Metrics.Address, o.Settings.Name = health, counted, t.Name()
	})
	now := series(t.Name())
	g.Eventually(now).Should(gomega.And( // the first failure must be an increase
		gomega.HaveKeyWithValue("kopf_handler_attempts_total handler=failing kind=create outcome=failed resource="+resource, 0.0),
		gomega.HaveKeyWithValue("kopf_object_writes_total answer=rejected reason=handled resource="+resource, 0.0),
		gomega.HaveKeyWithValue("kopf_object_errors_total resource="+resource, 0.0),
		gomega.HaveKeyWithValue("kopf_index_keys handler=index", 0.0)))
	live(t, g, namespace, "object-one", func() {
		g.Eventually(calls.Load).Should(gomega.BeEquivalentTo(2))
		g.Eventually(now).Should(gomega.And(
			gomega.HaveKeyWithValue("kopf_background_handlers kind=daemon state=running", 1.0),
			gomega.HaveKeyWithValue("kopf_background_handlers kind=timer state=waiting", 1.0),
			gomega.HaveKeyWithValue("kopf_index_keys handler=index", 1.0),
			gomega.HaveKeyWithValue("kopf_objects resource="+resource+" state=rest", 1.0),
			gomega.HaveKeyWithValue("kopf_objects_contended resource="+resource, 0.0),
			gomega.HaveKeyWithValue("kopf_events_total outcome=posted", gomega.BeNumerically(">", 0)),
			gomega.HaveKeyWithValue("kopf_startup_seconds", gomega.BeNumerically(">", 0)),
			gomega.HaveKeyWithValue("kopf_ready", 1.0), gomega.HaveKeyWithValue("kopf_leading", 1.0), gomega.HaveKeyWithValue("kopf_paused", 0.0),
			gomega.HaveKeyWithValue("kopf_watches resource="+resource+" state=alive", 1.0)))
	})
	attempts := func(handler, kind, outcome string) string {
		return "kopf_handler_attempts_total handler=" + handler + " kind=" + kind + " outcome=" + outcome + " resource=" + resource
	}
	for text, want := range map[string]float64{
		attempts("retried", "create", "retried"):                                         2,
		attempts("retried", "create", "succeeded"):                                       1,
		attempts("failing", "create", "failed"):                                          1,
		attempts("ignoring", "create", "ignored"):                                        1,
		attempts("parent", "create", "succeeded"):                                        1,
		attempts("parent", "subhandler", "succeeded"):                                    2,
		attempts("remove", "delete", "succeeded"):                                        1,
		attempts("timer", "timer", "succeeded"):                                          1,
		attempts("daemon", "daemon", "succeeded"):                                        1,
		"kopf_handler_duration_seconds handler=retried kind=create resource=" + resource: 3,
		"kopf_background_handlers kind=daemon state=running":                             0,
		"kopf_queue_depth":                                                               0,
	} {
		g.Eventually(now).Should(gomega.HaveKeyWithValue(text, want), text)
	}
	g.Expect(sum(t.Name(), "kopf_object_errors_total")).To(gomega.BeZero())
	nothingSecret(t, g, asking(counted, "/metrics")(), asking(health, "/readyz")(), asking(health, "/healthz")())
}

// nothingSecret expects that no label of our metrics contains the name of an object or of a
// sub-handler, and that no response contains the canary.
func nothingSecret(t *testing.T, g *gomega.WithT, metrics answer, others ...answer) {
	t.Helper()
	g.Expect(metrics).To(says(http.StatusOK, "kopf_handler_attempts_total{", "workqueue_depth{", "process_resident_memory_bytes"))
	for line := range strings.Lines(metrics.Body) {
		if strings.HasPrefix(line, "kopf_") {
			g.Expect(line).NotTo(gomega.Or(gomega.ContainSubstring("object-one"), gomega.ContainSubstring("item-of")))
		}
	}
	for _, answer := range append(others, metrics) {
		g.Expect(answer.Status).To(gomega.Equal(http.StatusOK))
		g.Expect(answer.Body).NotTo(gomega.ContainSubstring(canary))
	}
}

// uncounted returns how many writes of an operator its metrics do not count yet.
func uncounted(operator string, requests *testenv.CountingTransport) func() float64 {
	return func() float64 {
		counted := sum(operator, "kopf_object_writes_total") // before the requests, which can become more
		return float64(requests.Snapshot().Writes("kopfexamples")) - counted
	}
}

// The metrics count the writes that the API server receives.
func TestMetricsCountWritesByReason(t *testing.T) {
	t.Parallel()
	g, registry, namespace, config := gomega.NewWithT(t), kopf.NewRegistry(), cluster.Namespace(t), cluster.Config()
	requests := testenv.Count(config)
	declareAll(registry)
	operators.Start(t, config, namespace, registry, func(o *kopf.Options) { o.Settings.Name = t.Name() })
	live(t, g, namespace, "object-one", func() {
		patch := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"other":"x"}}`))
		g.Expect(cluster.Client().Patch(t.Context(), testenv.NewObject("KopfExample", namespace, "object-one", nil), patch)).To(gomega.Succeed())
	})
	now := series(t.Name())
	g.Eventually(uncounted(t.Name(), requests)).Should(gomega.BeZero(), requests.String)
	for _, reason := range []string{"finalizer", "progress", "status", "handled"} {
		g.Expect(now()).To(gomega.HaveKeyWithValue("kopf_object_writes_total answer=written reason="+reason+" resource="+resource,
			gomega.BeNumerically(">", 0)), reason)
	}
}

func TestRequestsToTheEndpointsCauseNoWrites(t *testing.T) {
	t.Parallel()
	g, registry, namespace, config := gomega.NewWithT(t), kopf.NewRegistry(), cluster.Namespace(t), cluster.Config()
	requests := testenv.Count(config)
	calls := declareAll(registry)
	health, counted := testenv.FreeAddress(t), testenv.FreeAddress(t)
	operators.Start(t, config, namespace, registry, func(o *kopf.Options) {
		o.Settings.Health.Address, o.Settings.Metrics.Address, o.Settings.Name = health, counted, t.Name()
	})
	live(t, g, namespace, "object-one", func() { g.Eventually(calls.Load).Should(gomega.BeEquivalentTo(2)) })
	g.Eventually(series(t.Name())).Should(gomega.And(
		gomega.HaveKeyWithValue("kopf_workers_busy", 0.0), gomega.HaveKeyWithValue("kopf_queue_depth", 0.0)))
	g.Eventually(uncounted(t.Name(), requests)).Should(gomega.BeZero(), requests.String)
	requests.Reset()
	for range 20 {
		for _, ask := range []func() answer{asking(health, "/readyz"), asking(health, "/healthz"), asking(counted, "/metrics")} {
			g.Expect(ask()).To(says(http.StatusOK))
		}
	}
	g.Expect(requests.Snapshot().Writes("kopfexamples")).To(gomega.BeZero(), requests.String())
}

func TestMetricsOfAStoppedOperatorDisappear(t *testing.T) {
	t.Parallel()
	g, namespace := gomega.NewWithT(t), cluster.Namespace(t)
	start := func() *operators.Operator {
		registry := kopf.NewRegistry()
		registry.OnEvent(examples, func(context.Context, *kopf.WatchEvent) error { return nil }, kopf.ID("event"))
		return operators.Start(t, cluster.Config(), namespace, registry, func(o *kopf.Options) { o.Settings.Name = t.Name() })
	}
	first, second := start(), start()
	g.Expect(cluster.Client().Create(t.Context(), testenv.NewObject("KopfExample", namespace, "one", nil))).To(gomega.Succeed())
	for _, name := range []string{t.Name(), t.Name() + "-2"} {
		g.Eventually(func() float64 { return sum(name, "kopf_handler_attempts_total") }).Should(gomega.BeEquivalentTo(1), name)
	}
	first.Stop()
	g.Expect(series(t.Name())()).To(gomega.BeEmpty())
	g.Expect(series(t.Name() + "-2")()).To(gomega.HaveKeyWithValue("kopf_ready", 1.0))
	second.Stop()
	g.Expect(series(t.Name() + "-2")()).To(gomega.BeEmpty())
}
