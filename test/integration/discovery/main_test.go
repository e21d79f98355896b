// Package discovery tests the scan of a cluster with a real API server.
package discovery

import (
	"testing"

	"github.com/kopf-go/kopf/test/testenv"
)

var cluster *testenv.Cluster

func TestMain(m *testing.M) {
	testenv.Main(m, &cluster, testenv.Options{CRDs: []string{"test/integration/discovery/testdata"}})
}
