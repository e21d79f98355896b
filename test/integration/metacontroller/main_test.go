// Package metacontroller tests controllers of Metacontroller in kopf serve, with their hooks, on a real API server: one file
// per subject.
package metacontroller

import (
	"testing"

	"github.com/kopf-go/kopf/test/testenv"
)

var cluster *testenv.Cluster

func TestMain(m *testing.M) {
	testenv.Main(m, &cluster, testenv.Options{Parallel: 12})
}
