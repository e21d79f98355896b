package permissions

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/shards"
	"github.com/kopf-go/kopf/pkg/shards/ring"
	"github.com/kopf-go/kopf/test/audit"
	"github.com/kopf-go/kopf/test/operators"
	"github.com/kopf-go/kopf/test/testenv"
)

// Replicas share objects, take shards over from each other, and remove what a dead one has left. No request is refused, and
// the rule for leases is used. TestFaultsNeedNothingElse uses the others.
func TestShardsNeedNothingElse(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	registry := func() *kopf.Registry {
		declared := kopf.NewRegistry()
		declareAll(declared)
		return declared
	}
	s := kopf.Settings{Name: b.name}
	s.Scope.Namespaces = []string{b.namespace}
	s.Peering.Standalone, s.Scanning.Disabled = true, true
	s.Persistence.Finalizer = b.namespace + ".example.com/finalizer"
	s.Replicas.Shards, s.Replicas.LeaseNamespace = 4, b.namespace
	s.Replicas.LeaseDuration, s.Replicas.RenewDeadline, s.Replicas.RetryPeriod = 8*time.Second, 5*time.Second, time.Second
	grants := slices.DeleteFunc(b.grantObjects(registry(), s), func(g audit.Grant) bool { return g.Resource != "leases" })
	b.Expect(grants).NotTo(gomega.BeEmpty())
	config := b.config()
	start := func() *operators.Operator {
		return operators.Start(t, config, b.namespace, registry(), func(o *kopf.Options) { o.Settings = s })
	}
	leases := func() ring.Leases {
		var list coordinationv1.LeaseList
		b.Expect(cluster.Client().List(t.Context(), &list, client.InNamespace(b.namespace))).To(gomega.Succeed())
		return ring.Sort(b.name, list.Items, s.Replicas.LeaseDuration)
	}
	// held waits until the shards are where they should be.
	held := func(replicas int) {
		t.Helper()
		b.Eventually(func() error {
			all := leases()
			live := all.LiveMembers(time.Now())
			if len(live) != replicas || len(all.Members) != replicas {
				return fmt.Errorf("there are the replicas %+v", all.Members)
			}
			for shard, should := range shards.Assign(s.Replicas.Shards, live) {
				if has := all.Shards[shard]; has.Holder != should {
					return fmt.Errorf("the shard %d should be that of %s: %+v", shard, should, has)
				}
			}
			return nil
		}).WithTimeout(testenv.Patience).Should(gomega.Succeed())
	}

	// The others must remove it.
	dead := &coordinationv1.Lease{}
	dead.Namespace, dead.Name = b.namespace, b.name+"-replica-dead"
	dead.Labels = ring.Labels(b.name)
	b.create(dead)
	first := start()
	held(1)
	for i := range 4 { // most likely, not all are in one shard
		b.handles(fmt.Sprint("of-the-first-", i))
	}
	second := start()
	held(2)
	for i := range 4 {
		b.handles(fmt.Sprint("of-both-", i))
	}
	first.Stop()
	held(1)
	b.handles("of-the-second")
	second.Stop()
	b.Expect(leases().Members).To(gomega.BeEmpty())

	b.Expect(b.refused()).To(gomega.BeEmpty())
	b.Expect(audit.Unused(grants, requests.Of(t, b.user), nil)).To(gomega.BeEmpty())
}
