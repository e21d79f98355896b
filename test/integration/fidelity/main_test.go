// Package fidelity compares the API server of the test kit with the one of Kubernetes: both
// pass the same tests.
package fidelity

import (
	"testing"

	"github.com/kopf-go/kopf/pkg/kopftest"
	"github.com/kopf-go/kopf/test/testenv"
)

var cluster *testenv.Cluster

func TestMain(m *testing.M) {
	testenv.Main(m, &cluster, testenv.Options{CRDs: []string{}})
}

// onBoth runs a test on both servers, in a namespace of its own.
func onBoth(t *testing.T, test func(t *testing.T, s *server)) {
	t.Helper()
	t.Run("memory", func(t *testing.T) {
		memory := kopftest.NewAPIServer(t)
		s := newServer(t, memory.Config())
		s.memory = memory
		test(t, s)
	})
	t.Run("kubernetes", func(t *testing.T) {
		test(t, newServer(t, cluster.Config()))
	})
}
