package lifecycle

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metrics "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/login"
	"github.com/kopf-go/kopf/pkg/settings"
	"github.com/kopf-go/kopf/test/testenv"
)

// Two operators in one process share neither handlers nor settings, and one can stop
// without the other.
func TestOperatorsInOneProcessShareNothing(t *testing.T) {
	t.Parallel()
	g := gomega.NewWithT(t)
	names, seen := []string{cluster.Namespace(t), cluster.Namespace(t)}, []*notes{{}, {}}
	var stops []func() error
	for i, namespace := range names {
		r := kopf.NewRegistry()
		r.OnCreate(examples, seen[i].created, kopf.ID("create"))
		r.OnCleanup(func(context.Context, *kopf.Activity) error { seen[i].add("cleanup"); return nil }, kopf.ID("cleanup"))
		o, stop := run(t, kopf.Options{Registry: r, Config: cluster.Config(), Settings: scoped(namespace)})
		g.Eventually(o.Ready()).Should(gomega.BeClosed())
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

// State follows the operator from its start to its end.
func TestStateOfAnOperator(t *testing.T) {
	t.Parallel()
	g, n, namespace, r := gomega.NewWithT(t), &notes{}, cluster.Namespace(t), kopf.NewRegistry()
	r.OnCreate(examples, n.created, kopf.ID("create"))
	o, stop := run(t, kopf.Options{Registry: r, Config: cluster.Config(), Settings: scoped(namespace)})
	g.Eventually(o.Ready()).Should(gomega.BeClosed())
	g.Eventually(o.State).Should(gomega.Equal(kopf.OperatorState{
		Ready: true, Leading: true,
		Watches: []kopf.WatchState{{Resource: "kopfexamples.v1.kopf.dev", Namespace: namespace, Listed: true}},
		Queue:   kopf.QueueState{Workers: settings.Default().Execution.Workers},
	}))
	g.Expect(o.Run(t.Context())).To(gomega.MatchError(gomega.ContainSubstring("was already started")))
	g.Expect(stop()).To(gomega.Succeed())
	g.Expect(o.State()).To(gomega.Equal(kopf.OperatorState{}))
}

// In the manager of another program, an operator starts and stops with the manager.
func TestOperatorInAManager(t *testing.T) {
	t.Parallel()
	g, n, namespace, r := gomega.NewWithT(t), &notes{}, cluster.Namespace(t), kopf.NewRegistry()
	r.OnStartup(func(_ context.Context, s *kopf.Startup) error {
		n.add("startup")
		s.Settings().Scope.Namespaces = []string{namespace}
		return nil
	}, kopf.ID("startup"))
	r.OnCreate(examples, n.created, kopf.ID("create"))
	r.OnCleanup(func(context.Context, *kopf.Activity) error { n.add("cleanup"); return nil }, kopf.ID("cleanup"))
	o, stop, done := startManager(t, kopf.Options{Registry: r})
	g.Eventually(o.Ready()).Should(gomega.BeClosed())
	g.Expect(o.Run(t.Context())).To(gomega.MatchError(gomega.ContainSubstring("was already started")))
	create(t, namespace, "one")
	g.Eventually(n.all).Should(gomega.Equal([]string{"startup", "created one"}))
	stop()
	g.Expect(<-done).To(gomega.Succeed())
	g.Expect(n.all()).To(gomega.Equal([]string{"startup", "created one", "cleanup"}))
}

// All replicas with shards handle objects, so their managers must not elect a leader. A manager that waits for its election ends.
func TestOperatorWithShardsInAManager(t *testing.T) {
	t.Parallel()
	for name, elects := range map[string]bool{"without election": false, "with an election": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g, n, namespace, r := gomega.NewWithT(t), &notes{}, cluster.Namespace(t), kopf.NewRegistry()
			r.OnCreate(examples, n.created, kopf.ID("create"))
			s := scoped(namespace)
			s.Name, s.Replicas.Shards, s.Replicas.LeaseNamespace = "shards.example.com", 4, namespace
			if elects {
				leader := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "election"}}
				leader.Spec = coordinationv1.LeaseSpec{HolderIdentity: new("another"), LeaseDurationSeconds: new(int32(3600)), RenewTime: &metav1.MicroTime{Time: time.Now()}}
				g.Expect(cluster.Client().Create(t.Context(), leader)).To(gomega.Succeed())
			}
			_, stop, done := startManager(t, kopf.Options{Registry: r, Settings: s}, func(o *manager.Options) {
				o.LeaderElection, o.LeaderElectionID, o.LeaderElectionNamespace = elects, "election", namespace
				o.LeaseDuration, o.RenewDeadline = new(time.Hour), new(time.Minute)
			})
			create(t, namespace, "one")
			if elects {
				g.Eventually(done).WithTimeout(2 * time.Minute).Should(gomega.Receive(gomega.MatchError(gomega.ContainSubstring(
					"an operator with settings.Replicas.Shards cannot be in a manager that elects a leader"))))
				g.Expect(n.all()).To(gomega.BeEmpty())
				return
			}
			g.Eventually(n.all).Should(gomega.Equal([]string{"created one"}))
			stop()
			g.Expect(<-done).To(gomega.Succeed())
		})
	}
}

// A startup handler that fails is an error of the manager.
func TestManagerWhoseOperatorCannotStart(t *testing.T) {
	t.Parallel()
	g, n, r := gomega.NewWithT(t), &notes{}, kopf.NewRegistry()
	r.OnStartup(func(context.Context, *kopf.Startup) error { return kopf.Permanent(errNo) }, kopf.ID("startup"))
	r.OnCreate(examples, n.created, kopf.ID("create"))
	_, _, done := startManager(t, kopf.Options{Registry: r})
	g.Eventually(done).Should(gomega.Receive(gomega.MatchError(errNo)))
}

// What a startup handler sets too late is an error, too.
func TestStartupHandlerCannotSetTheCheckOfAManager(t *testing.T) {
	t.Parallel()
	g, r := gomega.NewWithT(t), kopf.NewRegistry()
	r.OnStartup(func(_ context.Context, s *kopf.Startup) error { s.Settings().Health.ManagerCheck = "kopf"; return nil }, kopf.ID("startup"))
	_, _, done := startManager(t, kopf.Options{Registry: r})
	g.Eventually(done).Should(gomega.Receive(gomega.MatchError(gomega.ContainSubstring(
		"cannot have settings.Health.ManagerCheck from a startup handler: set it before kopf.Add"))))
}

func TestAddRefusesWhatTheManagerDecides(t *testing.T) {
	t.Parallel()
	g, r, connecting := gomega.NewWithT(t), kopf.NewRegistry(), kopf.NewRegistry()
	r.OnCreate(examples, (&notes{}).created, kopf.ID("create"))
	connecting.OnLogin(func(context.Context, *kopf.Activity) (*login.Connection, error) { return nil, errNo }, kopf.ID("login"))
	mgr, err := newManager()
	g.Expect(err).NotTo(gomega.HaveOccurred())
	s := kopf.Settings{}
	s.Replicas.LeaderElection, s.Networking.QPS, s.Metrics.Address, s.Permissions.LearnFile = true, 5, ":1", "roles.yaml"
	connect := func(context.Context) (*rest.Config, error) { return nil, errNo }
	for name, test := range map[string]struct {
		options kopf.Options
		want    []string
	}{
		"settings": {kopf.Options{Registry: r, Settings: s}, []string{
			"settings.Replicas: set LeaderElection", "settings.Networking.QPS: set QPS in the rest.Config", "settings.Metrics.Address: set Metrics", "settings.Permissions.LearnFile: observe the connection by kopf.ObservePermissions",
		}},
		"a connection": {kopf.Options{Registry: r, Config: cluster.Config(), Connect: connect}, []string{"Options.Config: pass it to", "Options.Connect: pass"}},
		"a scheme":     {kopf.Options{Registry: r, Scheme: runtime.NewScheme()}, []string{"another Options.Scheme: add the types"}},
		"logins":       {kopf.Options{Registry: connecting}, []string{`the login handler "login" cannot be used in a manager`}},
	} {
		_, err := kopf.Add(mgr, test.options)
		for _, want := range test.want {
			g.Expect(err).To(gomega.MatchError(gomega.ContainSubstring(want)), name)
		}
	}
	_, err = kopf.Add(mgr, kopf.Options{Registry: r, Settings: settings.Default(), Scheme: mgr.GetScheme()})
	g.Expect(err).NotTo(gomega.HaveOccurred())
}

func newManager(changes ...func(*manager.Options)) (manager.Manager, error) {
	options := manager.Options{Metrics: metrics.Options{BindAddress: "0"}, Logger: testenv.Logger()}
	for _, change := range changes {
		change(&options)
	}
	return ctrl.NewManager(cluster.Config(), options)
}

// staleReads writes config maps with a client, and counts the reads that do not show these writes: of one, of all, and of
// a deleted one.
func staleReads(ctx context.Context, c client.Client, namespace, name string) (stale int, err error) {
	one := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	key := client.ObjectKeyFromObject(one)
	if err := c.Create(ctx, one); err != nil {
		return 0, err
	}
	found := &corev1.ConfigMap{}
	if err := c.Get(ctx, key, found); apierrors.IsNotFound(err) {
		stale++
	} else if err != nil {
		return 0, err
	}
	one.Data = map[string]string{"size": "2"}
	if err := c.Update(ctx, one); err != nil {
		return 0, err
	}
	all := &corev1.ConfigMapList{}
	if err := c.List(ctx, all, client.InNamespace(namespace)); err != nil {
		return 0, err
	}
	if !slices.ContainsFunc(all.Items, func(listed corev1.ConfigMap) bool { return listed.Name == name && listed.Data["size"] == "2" }) {
		stale++
	}
	if err := c.Delete(ctx, one); err != nil {
		return 0, err
	}
	if err := c.Get(ctx, key, found); err == nil {
		stale++
	} else if !apierrors.IsNotFound(err) {
		return 0, err
	}
	return stale, nil
}

// The client of handlers in a manager reads from the cache of the manager, which can be older than what a handler has just
// written. controller-runtime can let reads wait for the writes of the same client.
func TestHandlersInAManagerCanReadWhatTheyHaveWritten(t *testing.T) {
	t.Parallel()
	const rounds = 20
	for name, test := range map[string]struct {
		consistent bool
		want       string
	}{
		"by default":      {false, "stale"},
		"with the option": {true, "never stale"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g, n, namespace, r := gomega.NewWithT(t), &notes{}, cluster.Namespace(t), kopf.NewRegistry()
			r.OnCreate(examples, func(ctx context.Context, c *kopf.Change) error {
				for i := range rounds {
					stale, err := staleReads(ctx, c.Client(), namespace, fmt.Sprint("child-", i))
					if err != nil {
						return kopf.Permanent(err)
					}
					if stale > 0 {
						n.add("stale")
						return nil
					}
				}
				n.add("never stale")
				return nil
			}, kopf.ID("create"))
			_, stop, done := startManager(t, kopf.Options{Registry: r, Settings: scoped(namespace)}, func(o *manager.Options) {
				o.Client.Cache = &client.CacheOptions{EnableReadYourWritesConsistency: new(test.consistent)}
				o.Cache.DefaultNamespaces = map[string]cache.Config{namespace: {}}
			})
			create(t, namespace, "one")
			g.Eventually(n.all).Should(gomega.Equal([]string{test.want}))
			stop()
			g.Expect(<-done).To(gomega.Succeed())
		})
	}
}

// startManager runs a manager with an operator in it.
func startManager(t *testing.T, options kopf.Options, changes ...func(*manager.Options)) (o *kopf.Operator, stop func(), done chan error) {
	t.Helper()
	g := gomega.NewWithT(t)
	mgr, err := newManager(changes...)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	o, err = kopf.Add(mgr, options)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	ctx, cancel := context.WithCancel(context.Background())
	done = make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	t.Cleanup(cancel)
	return o, cancel, done
}
