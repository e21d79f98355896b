package lifecycle

import (
	"context"
	"testing"

	"github.com/onsi/gomega"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metrics "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/settings"
	"github.com/kopf-go/kopf/test/operators"
)

// Two operators of one process have nothing in common: neither handlers nor
// settings, and the end of one is not the end of the other.
func TestOperatorsInOneProcessDoNotShareAnything(t *testing.T) {
	t.Parallel()
	g := gomega.NewWithT(t)
	names, seen := []string{cluster.Namespace(t), cluster.Namespace(t)}, []*notes{{}, {}}
	var stops []func() error
	for i, namespace := range names {
		r := kopf.NewRegistry()
		r.OnCreate(examples, seen[i].created, kopf.ID("create"))
		r.OnCleanup(func(context.Context, *kopf.Activity) error { seen[i].add("cleanup"); return nil }, kopf.ID("cleanup"))
		ready, stop := run(t, kopf.Options{Registry: r, Config: cluster.Config(), Settings: scoped(namespace)})
		g.Eventually(ready).Should(gomega.BeClosed())
		stops = append(stops, stop)
	}
	create(t, names[0], "one")
	create(t, names[1], "two")
	g.Eventually(seen[0].all).Should(gomega.Equal([]string{"created one"}))
	g.Eventually(seen[1].all).Should(gomega.Equal([]string{"created two"}))
	g.Expect(stops[0]()).To(gomega.Succeed())
	create(t, names[0], "three")
	create(t, names[1], "four")
	g.Eventually(seen[1].all).Should(gomega.Equal([]string{"created two", "created four"}))
	g.Expect(stops[1]()).To(gomega.Succeed())
	g.Expect(seen[0].all()).To(gomega.Equal([]string{"created one", "cleanup"}))
	g.Expect(seen[1].all()).To(gomega.Equal([]string{"created two", "created four", "cleanup"}))
}

// In a manager of somebody else an operator starts and ends with it.
func TestAnOperatorInAManager(t *testing.T) {
	t.Parallel()
	g, n, namespace, r := gomega.NewWithT(t), &notes{}, cluster.Namespace(t), kopf.NewRegistry()
	r.OnStartup(func(_ context.Context, s *kopf.Startup) error {
		n.add("startup")
		s.Settings().Scope.Namespaces = []string{namespace}
		return nil
	}, kopf.ID("startup"))
	r.OnCreate(examples, n.created, kopf.ID("create"))
	r.OnCleanup(func(context.Context, *kopf.Activity) error { n.add("cleanup"); return nil }, kopf.ID("cleanup"))
	stop, done := startManager(t, r, kopf.Settings{})
	create(t, namespace, "one")
	g.Eventually(n.all).Should(gomega.Equal([]string{"startup", "created one"}))
	stop()
	g.Expect(<-done).To(gomega.Succeed())
	g.Expect(n.all()).To(gomega.Equal([]string{"startup", "created one", "cleanup"}))
}

// A startup handler that fails is an error of the manager.
func TestAManagerWithoutItsOperator(t *testing.T) {
	t.Parallel()
	g, n, r := gomega.NewWithT(t), &notes{}, kopf.NewRegistry()
	r.OnStartup(func(context.Context, *kopf.Startup) error { return kopf.Permanent(errNo) }, kopf.ID("startup"))
	r.OnCreate(examples, n.created, kopf.ID("create"))
	_, done := startManager(t, r, kopf.Settings{})
	g.Eventually(done).Should(gomega.Receive(gomega.MatchError(errNo)))
}

func TestWhatAManagerDecides(t *testing.T) {
	t.Parallel()
	g, r := gomega.NewWithT(t), kopf.NewRegistry()
	r.OnCreate(examples, (&notes{}).created, kopf.ID("create"))
	mgr, err := newManager()
	g.Expect(err).NotTo(gomega.HaveOccurred())
	s := kopf.Settings{}
	s.Replicas.LeaderElection, s.Networking.QPS, s.Metrics.Address = true, 5, ":1"
	g.Expect(kopf.Add(mgr, r, s)).To(gomega.MatchError(gomega.ContainSubstring(
		"an operator in a manager cannot have settings.Replicas, settings.Metrics.Address, settings.Networking.QPS: give it to the manager by its options")))
	g.Expect(kopf.Add(mgr, r, settings.Default())).To(gomega.Succeed())
}

func newManager() (manager.Manager, error) {
	return ctrl.NewManager(cluster.Config(), manager.Options{Metrics: metrics.Options{BindAddress: "0"}, Logger: operators.Logger()})
}

// startManager runs one with an operator in it.
func startManager(t *testing.T, r *kopf.Registry, s kopf.Settings) (stop func(), done chan error) {
	t.Helper()
	g := gomega.NewWithT(t)
	mgr, err := newManager()
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(kopf.Add(mgr, r, s)).To(gomega.Succeed())
	ctx, cancel := context.WithCancel(context.Background())
	done = make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	t.Cleanup(cancel)
	return cancel, done
}
