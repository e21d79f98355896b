// Package admission tests the outcome of requests that admission handlers review, on a
// real API server.
package admission

import (
	"os"
	"testing"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/test/testenv"
)

var cluster *testenv.Cluster

// The test binary is also that of replicas, so that a test can kill one.
func TestMain(m *testing.M) {
	if os.Getenv(namespaceVariable) != "" {
		os.Exit(runReplica())
	}
	testenv.Main(m, &cluster, testenv.Options{Parallel: 12})
}

var (
	examples    = kopf.Resource("kopf.dev", "v1", "kopfexamples")
	deployments = kopf.Resource("apps", "v1", "deployments")
	pods        = kopf.Resource("v1", "pods")
)
