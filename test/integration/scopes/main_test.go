// Package scopes tests on a real API server which resources and namespaces an operator watches
// as they appear and disappear.
package scopes

import (
	"testing"

	"github.com/kopf-go/kopf/test/testenv"
)

var cluster *testenv.Cluster

func TestMain(m *testing.M) {
	testenv.Main(m, &cluster, testenv.Options{Parallel: 8})
}
