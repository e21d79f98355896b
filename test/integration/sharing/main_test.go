// Package sharing tests operators that share their objects by shards on a real API server. Their processes join, stop, are
// killed, and are frozen, while objects are created, changed, and deleted.
// The handlers write to a journal what they do, and the Leases are watched, so that both can be compared.
//
// Of 40 stories with 200 objects and Leases of 5 seconds, on two processors that others used, too: no call began without the
// shard, no success was recorded twice, and no child was created twice. Shards had no holder for at most 10 seconds after
// one replica was killed shortly before another one was frozen, and at most 6.5 seconds after a release. A rebalancing took up
// to 5 seconds if a replica had died, and less than a second otherwise; it wrote to no object. Three replicas wrote 15 Leases
// a second: with the default times, a third of that.
//
//	go test ./test/integration/sharing -run Stories -stories 20 -objects 3000 -strikes 12 -patience 5m -v
package sharing

import (
	"os"
	"testing"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/kopf-go/kopf/test/testenv"
)

// The test binary is also the replica, so that a test can kill and freeze a process. Each test has its own control plane.
func TestMain(m *testing.M) {
	ctrl.SetLogger(testenv.Logger())
	if os.Getenv(replicaVariable) != "" {
		os.Exit(runReplica())
	}
	os.Exit(m.Run())
}

// gates are the flags of API servers with and without lists and watches of shards.
var gates = map[string]testenv.Options{
	"the API server selects": {ShardedLists: true},
	"the replicas select":    {},
}
