package replicas

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/onsi/gomega"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metrics "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/model/stop"
	"github.com/kopf-go/kopf/test/operators"
	"github.com/kopf-go/kopf/test/testenv"
)

// partition blocks requests for leases while it is up, and no others.
type partition struct{ up atomic.Bool }

var errPartition = errors.New("the network is partitioned")

func (p *partition) wrap(next http.RoundTripper) http.RoundTripper {
	return testenv.RoundTripper(func(r *http.Request) (*http.Response, error) {
		if p.up.Load() && strings.Contains(r.URL.Path, "/leases") {
			return nil, errPartition
		}
		return next.RoundTrip(r)
	})
}

// replica runs a replica in this process.
func (j *journal) replica(name, namespace string, config *rest.Config, registry *kopf.Registry) (stop func(), done chan error) {
	ctx, cancel := context.WithCancel(context.Background())
	done = make(chan error, 1)
	options := kopf.Options{Registry: registry, Settings: elected(namespace), Config: config, Logger: testenv.Logger().WithName(name)}
	go func() { done <- kopf.Run(ctx, options) }()
	j.t.Cleanup(cancel)
	return cancel, done
}

// endless has a handler that returns only when its context is canceled.
func (j *journal) endless(name string) *kopf.Registry {
	r, write := kopf.NewRegistry(), journalOf(j.path, name)
	r.OnCreate(examples, func(ctx context.Context, c *kopf.Change) error {
		write("begin create " + c.Name())
		<-ctx.Done()
		write("end create " + c.Name() + ": " + context.Cause(ctx).Error())
		return ctx.Err()
	}, kopf.ID("create"))
	r.OnCleanup(func(context.Context, *kopf.Activity) error { write("cleanup"); return nil }, kopf.ID("cleanup"))
	return r
}

// A leader that cannot renew its lease stops being the leader. Its handlers do not get the
// grace period, so they end before another replica begins.
func TestLostLeaseCancelsTheHandlersAtOnce(t *testing.T) {
	t.Parallel()
	g, j, namespace := gomega.NewWithT(t), newJournal(t), cluster.Namespace(t)
	between, config := &partition{}, cluster.Config()
	config.Wrap(between.wrap)
	_, lost := j.replica("a", namespace, config, j.endless("a"))
	g.Expect(cluster.Client().Create(t.Context(), testenv.NewObject("KopfExample", namespace, "one", nil))).To(gomega.Succeed())
	g.Eventually(j.lines).Should(gomega.ContainElement("a: begin create one"))
	stop, done := j.replica("b", namespace, cluster.Config(), j.endless("b"))
	between.up.Store(true)
	g.Eventually(lost, testenv.Patience).Should(gomega.Receive(gomega.MatchError(gomega.ContainSubstring("leader election lost"))))
	g.Expect(j.lines()).To(gomega.ContainElements("a: end create one: leader election lost", "a: cleanup"))
	g.Eventually(j.lines).Should(gomega.ContainElement("b: begin create one"))
	g.Expect(j.workers()).To(gomega.Equal([]string{"a", "b"}))
	stop() // in vain: its handler does not end by itself
	j.t.Cleanup(func() { <-done })
}

// Standbys watch, but write nothing: neither to objects nor to the peering, where equal
// priorities would pause all replicas.
func TestStandbysWriteNothing(t *testing.T) {
	t.Parallel()
	g, j, namespace := gomega.NewWithT(t), newJournal(t), cluster.Namespace(t)
	meeting := testenv.NewObject("KopfPeering", namespace, "default", nil)
	g.Expect(cluster.Client().Create(t.Context(), meeting)).To(gomega.Succeed())
	ours := func(name string) *kopf.Registry {
		r := kopf.NewRegistry()
		declare(r, journalOf(j.path, name))
		return r
	}
	stop, done := j.replica("a", namespace, cluster.Config(), ours("a"))
	g.Expect(cluster.Client().Create(t.Context(), testenv.NewObject("KopfExample", namespace, "one", nil))).To(gomega.Succeed())
	g.Eventually(j.lines).Should(gomega.ContainElement("a: end create one"))

	config := cluster.Config()
	requests := testenv.Count(config)
	stopOther, otherDone := j.replica("b", namespace, config, ours("b"))
	watched := testenv.Key{Method: testenv.MethodWatch, Target: "kopfexamples"}
	g.Eventually(func() int { return requests.Snapshot()[watched] }).Should(gomega.BeNumerically(">", 0))
	g.Expect(cluster.Client().Create(t.Context(), testenv.NewObject("KopfExample", namespace, "two", nil))).To(gomega.Succeed())
	g.Eventually(j.lines).Should(gomega.ContainElement("a: end create two"))
	g.Expect(j.workers()).To(gomega.Equal([]string{"a"}))
	for _, resource := range []string{"kopfexamples", "kopfpeerings"} {
		g.Expect(requests.Snapshot().Writes(resource)).To(gomega.Equal(0), requests.String())
	}

	stop()
	g.Expect(<-done).To(gomega.Succeed())
	g.Eventually(j.lines).Should(gomega.ContainElement("b: begin daemon two"))
	g.Expect(j.workers()).To(gomega.Equal([]string{"a", "b"}))
	stopOther()
	g.Expect(<-otherDone).To(gomega.Succeed())
}

func TestLeaseNeedsANamespace(t *testing.T) {
	t.Parallel()
	g, r := gomega.NewWithT(t), kopf.NewRegistry()
	declare(r, func(string) {})
	s := elected("default")
	s.Replicas.LeaseNamespace = ""
	err := kopf.Run(t.Context(), kopf.Options{Registry: r, Config: cluster.Config(), Settings: s})
	g.Expect(err).To(gomega.MatchError(gomega.ContainSubstring("settings.Replicas.LeaseNamespace")))
}

// In the manager of another program, a lost lease is no stop either: the handlers do not get
// the grace period, and learn why.
func TestLostLeaseOfAManagerCancelsTheHandlersAtOnce(t *testing.T) {
	t.Parallel()
	g, j, namespace := gomega.NewWithT(t), newJournal(t), cluster.Namespace(t)
	between, config, log := &partition{}, cluster.Config(), &operators.Journal{}
	config.Wrap(between.wrap)
	registry, write := j.endless("a"), journalOf(j.path, "a")
	registry.Daemon(examples, func(ctx context.Context, task *kopf.Task) error {
		write("begin daemon " + task.Name())
		<-ctx.Done()
		write(fmt.Sprintf("end daemon %s: %v, %t", task.Name(), context.Cause(ctx), task.StopReason().Has(stop.LeadershipLost)))
		return nil
	}, kopf.ID("daemon"))
	_, lost := j.manager(namespace, config, kopf.Options{Registry: registry, Logger: log.Logger()})
	g.Expect(cluster.Client().Create(t.Context(), testenv.NewObject("KopfExample", namespace, "one", nil))).To(gomega.Succeed())
	g.Eventually(j.lines).Should(gomega.ContainElements("a: begin create one", "a: begin daemon one"))
	between.up.Store(true)
	g.Eventually(lost, testenv.Patience).Should(gomega.Receive(gomega.MatchError(gomega.ContainSubstring("leader election lost"))))
	g.Eventually(j.lines, time.Second).Should(gomega.ContainElements(
		"a: end create one: leader election lost", "a: end daemon one: leader election lost, true"))
	g.Expect(log.String()).To(gomega.ContainSubstring("The leadership is lost"))
}

// A manager that is stopped waits for the handlers: that is not a loss.
func TestStoppedManagerLeavesTheGracePeriod(t *testing.T) {
	t.Parallel()
	g, j, namespace, log := gomega.NewWithT(t), newJournal(t), cluster.Namespace(t), &operators.Journal{}
	registry, write := kopf.NewRegistry(), journalOf(j.path, "a")
	registry.OnCreate(examples, func(ctx context.Context, c *kopf.Change) error {
		write("begin create " + c.Name())
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
		write(fmt.Sprintf("end create %s: %v", c.Name(), ctx.Err()))
		return nil
	}, kopf.ID("create"))
	stop, done := j.manager(namespace, cluster.Config(), kopf.Options{Registry: registry, Logger: log.Logger()})
	g.Expect(cluster.Client().Create(t.Context(), testenv.NewObject("KopfExample", namespace, "one", nil))).To(gomega.Succeed())
	g.Eventually(j.lines).Should(gomega.ContainElement("a: begin create one"))
	stop()
	g.Eventually(done).Should(gomega.Receive(gomega.BeNil()))
	g.Expect(j.lines()).To(gomega.ContainElement("a: end create one: <nil>"))
	g.Expect(log.String()).NotTo(gomega.ContainSubstring("leadership"))
}

// manager runs a manager with leader election and an operator in it.
func (j *journal) manager(namespace string, config *rest.Config, options kopf.Options) (stop func(), done chan error) {
	s := elected(namespace)
	mgr, err := ctrl.NewManager(config, manager.Options{
		Metrics: metrics.Options{BindAddress: "0"}, Logger: testenv.Logger(), LeaderElection: true,
		LeaderElectionID: s.Replicas.LeaseName, LeaderElectionNamespace: namespace,
		LeaseDuration: &s.Replicas.LeaseDuration, RenewDeadline: &s.Replicas.RenewDeadline, RetryPeriod: &s.Replicas.RetryPeriod,
	})
	if err == nil {
		options.Settings.Scope.Namespaces = []string{namespace}
		_, err = kopf.Add(mgr, options)
	}
	if err != nil {
		j.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done = make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	j.t.Cleanup(cancel)
	return cancel, done
}
