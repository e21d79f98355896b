// Package replicas tests several processes of one operator: which of them works, which
// one takes over, and when.
package replicas

import (
	"os"
	"testing"
	"time"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/test/testenv"
)

var (
	cluster  *testenv.Cluster
	examples = kopf.Resource("kopf.dev", "v1", "kopfexamples")
)

// The test binary is also the operator's, so that a test can kill a separate process.
func TestMain(m *testing.M) {
	if os.Getenv(replicaVariable) != "" {
		os.Exit(runReplica())
	}
	testenv.Main(m, &cluster, testenv.Options{CRDs: []string{"config/crd/kopf.dev", testenv.ExampleCRDs}})
}

// elected returns the settings of a replica. The times are as short as the server and a
// busy machine allow.
func elected(namespace string) kopf.Settings {
	var s kopf.Settings
	s.Scope.Namespaces = []string{namespace}
	s.Replicas.LeaderElection, s.Replicas.LeaseName, s.Replicas.LeaseNamespace = true, "replicas", namespace
	s.Replicas.LeaseDuration, s.Replicas.RenewDeadline, s.Replicas.RetryPeriod = 6*time.Second, 4*time.Second, 500*time.Millisecond
	return s
}
