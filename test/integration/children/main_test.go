// Package children tests on a real API server that parents are told about their children.
package children

import (
	"testing"

	"github.com/kopf-go/kopf/test/testenv"
)

var cluster *testenv.Cluster

func TestMain(m *testing.M) {
	testenv.Main(m, &cluster, testenv.Options{Parallel: 8})
}
