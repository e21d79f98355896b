package admission

import (
	"flag"
	"testing"
	"time"

	"github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/test/operators"
	"github.com/kopf-go/kopf/test/testenv"
)

var (
	restarts = flag.Int("restarts", 4, "the number of restarts in a rolling update")
	kills    = flag.Int("kills", 1, "the number of replicas that are killed in a rolling update")
)

// replicas are those of a test, with their service and a load.
type replicas struct {
	*gomega.WithT
	t         *testing.T
	namespace string
	service   *service
	load      *load
	logs      *operators.Journal
	shards    int // 0: one of them leads
	rotations int // that the test has seen
}

func newReplicas(t *testing.T) *replicas {
	t.Helper()
	namespace := cluster.Namespace(t)
	return &replicas{WithT: gomega.NewWithT(t), t: t, namespace: namespace, service: newService(t), load: newLoad(t, namespace), logs: &operators.Journal{}}
}

func (r *replicas) newReplica() replica {
	return replica{namespace: r.namespace, url: r.service.url(), port: testenv.FreePort(r.t), shards: r.shards}
}

// start starts a replica in this process, and returns what stops it in order.
func (r *replicas) start() (stop func()) {
	r.t.Helper()
	one := r.newReplica()
	operator := operators.Start(r.t, cluster.Config(), r.namespace, one.registry(), one.adjust, func(o *kopf.Options) { o.Logger = r.logs.Logger() })
	r.service.add(one.port)
	return func() {
		r.note("stop", one)
		r.service.removeLate(one.port)
		operator.Stop()
		r.note("stopped", one)
	}
}

// startFirst starts the first replica, and the load when the cluster calls both of its handlers: it learns of each
// configuration by itself.
func (r *replicas) startFirst() (stop func()) {
	r.t.Helper()
	stop = r.start()
	r.Eventually(r.load.rejects).Should(haveCode(418, "bad"))
	r.Eventually(r.load.mutates).Should(gomega.BeTrue())
	r.load.start()
	return stop
}

// spawn starts a standby as a process, and waits until the API server has called it.
func (r *replicas) spawn() (port int, kill func()) {
	r.t.Helper()
	leader := r.leader()
	one := r.newReplica()
	process := one.spawn(r.t)
	r.service.add(one.port)
	r.Eventually(r.service.usedBy).WithArguments(one.port).Should(gomega.BeNumerically(">", 0))
	return one.port, func() {
		r.Expect(r.leader()).To(gomega.Equal(leader), "the process must be a standby")
		r.note("kill", one)
		r.Expect(process.Kill()).To(gomega.Succeed())
	}
}

// note logs what happens to a replica, next to the requests that fail.
func (r *replicas) note(what string, to replica) {
	r.t.Helper()
	r.t.Logf("%s: %s %d", time.Now().Format(time.StampMilli), what, to.port)
}

func (r *replicas) leader() string {
	r.t.Helper()
	lease := &coordinationv1.Lease{}
	r.Expect(cluster.Client().Get(r.t.Context(), types.NamespacedName{Namespace: r.namespace, Name: r.namespace}, lease)).To(gomega.Succeed())
	return *lease.Spec.HolderIdentity
}

// certificate returns the current certificate.
func (r *replicas) certificate() string {
	r.t.Helper()
	secret := &corev1.Secret{}
	r.Expect(cluster.Client().Get(r.t.Context(), types.NamespacedName{Namespace: r.namespace, Name: "webhooks"}, secret)).To(gomega.Succeed())
	return string(secret.Data[corev1.TLSCertKey])
}

// drain removes a replica from the service, and waits until no API server uses its open connections
// anymore: a new certificate needs new connections. When it is replaced for the second time, all of them
// know the first replacement.
func (r *replicas) drain(port int) {
	r.t.Helper()
	r.service.remove(port)
	r.rotate()
	r.rotate()
	r.Eventually(r.load.areAnswered()).Should(gomega.BeTrue()) // those of the old connections, too
	used := r.service.usedBy(port)
	r.rotate()
	r.Expect(r.service.usedBy(port)).To(gomega.Equal(used))
}

// rotate waits until the certificate is replaced.
func (r *replicas) rotate() {
	r.t.Helper()
	before := r.certificate()
	r.Eventually(r.certificate).ShouldNot(gomega.Equal(before), r.logs.String)
	r.rotations++
}

// Replicas take turns as in a rolling update: the new one is ready before the old one stops. Others are
// killed when the service has forgotten them, and certificates are replaced all the time. Every request
// is reviewed, and none fails.
func TestNoRequestIsMissedInARollingUpdate(t *testing.T) {
	t.Parallel()
	newReplicas(t).roll(*kills)
}

// The same with shards: the configurations belong to the holder of shard 0, which is another one after each restart.
func TestNoRequestIsMissedWhenShardsMove(t *testing.T) {
	t.Parallel()
	r := newReplicas(t)
	r.shards = 4
	r.roll(0)
}

// roll replaces replicas, and kills standbys between some of the restarts.
func (r *replicas) roll(kills int) {
	r.t.Helper()
	stop := r.startFirst()
	for restart := range *restarts {
		next := r.start()
		if restart < kills {
			port, kill := r.spawn()
			r.drain(port)
			kill()
		}
		stop()
		stop = next
	}
	r.rotate()
	r.load.stop()
	sent, unchecked, failed := r.load.counts()
	r.t.Logf("%d requests, %d restarts, %d kills, at least %d rotations", sent, *restarts, min(kills, *restarts), r.rotations)
	r.Expect([]int{unchecked, failed}).To(gomega.Equal([]int{0, 0}), "unchecked and failed of %d requests\n%s", sent, r.logs)
	stop()
	r.Expect(webhooks(r.t, r.namespace)()).To(gomega.Equal(1))
}

// A standby is killed in the middle of its work, and the service learns of it late. Nothing is admitted
// unchecked. What fails is what was sent to that replica.
func TestAKillCostsOnlyTheRequestsOfItsReplica(t *testing.T) {
	t.Parallel()
	r := newReplicas(t)
	stop := r.startFirst()
	lost := 0
	for range *kills {
		port, kill := r.spawn()
		_, _, before := r.load.counts()
		kill()
		<-r.service.removeLate(port)
		r.Eventually(r.load.areAnswered()).Should(gomega.BeTrue())
		_, _, failed := r.load.counts()
		lost += r.service.lostBy(port)
		r.Expect(failed - before).To(gomega.BeNumerically("<=", r.service.lostBy(port)))
		r.rotate()
		_, _, later := r.load.counts()
		r.Expect(later).To(gomega.Equal(failed), "a request fails although the service knows better")
	}
	r.load.stop()
	sent, unchecked, failed := r.load.counts()
	t.Logf("%d requests, of which %d have failed; %d connections were lost", sent, failed, lost)
	r.Expect(unchecked).To(gomega.BeZero())
	stop()
}
