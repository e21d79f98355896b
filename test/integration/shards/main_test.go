// Package shards tests processes that divide shards among themselves on a real API server, while they are killed, frozen, and
// stopped.
package shards

import (
	"os"
	"testing"

	"github.com/kopf-go/kopf/test/testenv"
)

var cluster *testenv.Cluster

// The test binary is also the replica, so that a test can kill and freeze a process.
func TestMain(m *testing.M) {
	if os.Getenv(replicaVariable) != "" {
		os.Exit(runReplica())
	}
	testenv.Main(m, &cluster, testenv.Options{})
}
