package explain

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/inspect"
	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/shards"
	"github.com/kopf-go/kopf/pkg/shards/ring"
	"github.com/kopf-go/kopf/test/testenv"
)

// Two replicas share objects. The first one has all of them, and handlers that run keep the shards that the second one
// should have.
func TestReplicasWithShardsAreAsked(t *testing.T) {
	s := newScene(t)
	s.settings.Name = "sharing.example.com"
	s.settings.Metrics.Secure = true
	s.settings.Peering.Standalone = true
	s.settings.Execution.GracePeriod = time.Hour
	s.settings.Replicas.Shards = 8
	s.settings.Replicas.LeaseNamespace = s.namespace
	s.settings.Replicas.LeaseDuration, s.settings.Replicas.RenewDeadline, s.settings.Replicas.RetryPeriod = 10*time.Second, 6*time.Second, time.Second
	division := shards.Division{Number: 8}
	returns := make(chan struct{})
	s.OnCreate(examples, func(context.Context, *kopf.Change) error { <-returns; return nil }, kopf.ID("slow"))

	list := func() *inspect.ShardList {
		found, err := s.connect().Shards(t.Context(), "", s.namespace)
		s.Expect(err).NotTo(gomega.HaveOccurred())
		return found
	}
	s.Expect(list().State).To(gomega.HavePrefix("The lease does not exist: no operator with shards"))
	token := s.token("reader", true)
	first := inspect.Endpoint{URL: "https://" + testenv.FreeAddress(t), Token: token}
	s.settings.Metrics.Address = strings.TrimPrefix(first.URL, "https://")
	one := s.start()
	defer one.Stop()
	var objects []*unstructured.Unstructured
	for i := range 12 {
		objects = append(objects, s.create(fmt.Sprint("object-", i)))
	}
	asked := func(endpoints ...inspect.Endpoint) *inspect.ShardList {
		all := list()
		for _, at := range endpoints {
			all.AskReplica(t.Context(), at)
		}
		return all
	}
	// counted returns how many objects the replicas have, or why some shards are not handled.
	counted := func(endpoints ...inspect.Endpoint) func() (sum int, err error) {
		return func() (sum int, err error) {
			all := asked(endpoints...)
			for _, shard := range all.Shards {
				if shard.Holder == "" || shard.Holder != shard.Assigned || shard.Now == nil || !shard.Now.Handling || !shard.Now.Draining.IsZero() {
					return 0, fmt.Errorf("the shard %d: %s", shard.Number, shard.Message)
				}
				sum += shard.Now.Objects
			}
			return sum, nil
		}
	}
	s.Eventually(counted(first)).WithTimeout(testenv.Patience).Should(gomega.Equal(len(objects)))
	shardOf := func(object *unstructured.Unstructured) int {
		return division.Of(object.GetNamespace(), object.GetUID())
	}
	mine := objects[0]
	shard := shardOf(mine)
	holder := list().Shards[shard].Holder
	said, err := s.explained(mine.GetName())()
	s.Expect(err).NotTo(gomega.HaveOccurred())
	s.Expect(said.Text(inspect.Style{})).To(gomega.ContainSubstring(fmt.Sprintf("\nShard\n  - Replicas with 8 shards by uid hold the lease %s/sharing.example.com. The object is in shard %d.\n  - %s holds the lease %[1]s/sharing.example.com-shard-%[2]d of this shard: it calls", s.namespace, shard, holder)))
	_, err = s.connect().ReplicaOf(t.Context(), inspect.Target{Kind: "kopfexample", Namespace: s.namespace, Name: mine.GetName()}, s.namespace)
	s.Expect(err).To(gomega.MatchError(gomega.ContainSubstring(fmt.Sprintf("the replica %s, which holds the shard %d of the object, is no pod in the namespace", holder, shard))))

	second := inspect.Endpoint{URL: "https://" + testenv.FreeAddress(t), Token: token}
	s.settings.Metrics.Address = strings.TrimPrefix(second.URL, "https://")
	two := s.start()
	defer two.Stop()
	findings := func(object *unstructured.Unstructured, at inspect.Endpoint) func() ([]string, error) {
		return func() ([]string, error) {
			said, err := s.now(object.GetName(), at)
			if err != nil {
				return nil, err
			}
			return said.Now.Findings, nil
		}
	}
	var moving *unstructured.Unstructured
	s.Eventually(func() error {
		all := asked(first, second)
		for _, object := range objects {
			if of := all.Shards[shardOf(object)]; of.Now != nil && !of.Now.Draining.IsZero() && of.Now.Left > 0 && len(of.Now.Calls) > 0 {
				moving = object
				return nil
			}
		}
		return fmt.Errorf("no shard is given up:\n%s", all.Text(inspect.Style{}))
	}).WithTimeout(testenv.Patience).Should(gomega.Succeed())
	of := asked(first, second).Shards[shardOf(moving)]
	s.Expect(of.Message).To(gomega.And(gomega.HavePrefix(holder+" since "), gomega.ContainSubstring("; "+of.Assigned+" should have the shard, and "+holder+" gives it up, since "), gomega.ContainSubstring("handlers run: slow for kopfexamples.v1.kopf.dev "+s.namespace+"/")))
	s.Expect(of.Assigned).NotTo(gomega.Equal(holder))
	s.Eventually(findings(moving, first)).Should(gomega.ContainElements(
		fmt.Sprintf("The object is in shard %d, which this replica, %s, handles.", of.Number, holder), gomega.HavePrefix("The replica gives the shard up since "), gomega.HavePrefix("The handler slow is running since ")))
	s.Eventually(findings(moving, second)).Should(gomega.ContainElement(
		fmt.Sprintf("The object is in shard %d, which this replica, %s, does not handle: it does not know what others do.", of.Number, of.Assigned)))

	close(returns)
	s.Eventually(counted(first, second)).WithTimeout(testenv.Patience).Should(gomega.Equal(len(objects)))
	s.Eventually(findings(moving, second)).Should(gomega.ContainElements(
		fmt.Sprintf("The object is in shard %d, which this replica, %s, handles.", of.Number, of.Assigned), "Nothing is due for the object."))
	two.Stop()
	one.Stop()
	s.Expect(list().State).To(gomega.Equal("No operator holds the lease: none with shards or with leader election is running."))
}

// An object is not handled while no replica holds the lease of its shard.
func TestAShardWithoutAHolderIsSaid(t *testing.T) {
	s := newScene(t)
	s.settings.Name = "shops.example.com"
	s.settings.Replicas.LeaseNamespace = s.namespace
	s.OnCreate(examples, create, kopf.ID("createFn"))
	s.create("one")
	target := inspect.Target{Kind: "kopfexample", Namespace: s.namespace, Name: "one"}
	const shard = 0 // there is only one, so that the sentences are always the same
	lease := func(name, holder string, renewed time.Time) *coordinationv1.Lease {
		l := &coordinationv1.Lease{}
		l.Namespace, l.Name = s.namespace, name
		l.Spec.HolderIdentity, l.Spec.LeaseDurationSeconds = &holder, new(int32(600))
		l.Spec.RenewTime = &metav1.MicroTime{Time: renewed}
		return l
	}
	put := func(l *coordinationv1.Lease) {
		t.Helper()
		old := l.DeepCopy()
		s.Expect(client.IgnoreNotFound(cluster.Client().Delete(t.Context(), old))).To(gomega.Succeed())
		s.Expect(cluster.Client().Create(t.Context(), l)).To(gomega.Succeed())
	}
	name := ring.ShardLease(s.settings.Name, shard)
	put(lease(s.settings.Name, "1 shards by uid", time.Now()))
	s.states("one", "no lease of the shard", "create", "held", "createFn (create): paused")
	_, err := s.connect().ReplicaOf(t.Context(), target, s.namespace)
	s.Expect(err).To(gomega.MatchError(gomega.ContainSubstring(fmt.Sprintf("the replica that handles the shard %d of the object is unknown without the lease %q", shard, name))))
	put(lease(name, "", time.Now()))
	s.states("one", "a released lease of the shard", "create", "held", "createFn (create): paused")
	_, err = s.connect().ReplicaOf(t.Context(), target, s.namespace)
	s.Expect(err).To(gomega.MatchError(gomega.ContainSubstring(fmt.Sprintf("no replica holds the lease %q", name))))
	put(lease(name, "pod-1_x", time.Now().Add(-time.Hour)))
	s.states("one", "an expired lease of the shard", "create", "held", "createFn (create): paused")
	put(lease(name, "pod-1_x", time.Now()))
	s.states("one", "a held lease of the shard", "create", "createFn (create): due")
	put(lease(s.settings.Name, "1 shards by uid", time.Now().Add(-time.Hour)))
	s.states("one", "an expired lease of all replicas", "create", "perhaps held", "createFn (create): due")
	s.settings.Replicas.Shards = 1
	s.states("one", "an expired lease of all replicas, which need it", "create", "held", "createFn (create): paused")
}
