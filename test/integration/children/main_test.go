// Package children tests on a real API server that parents are told about their children.
package children

import (
	"flag"
	"testing"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/kopf-go/kopf/test/operators"
	"github.com/kopf-go/kopf/test/testenv"
)

var cluster *testenv.Cluster

func TestMain(m *testing.M) {
	_ = flag.Set("test.parallel", "8") // the tests wait more than they compute
	ctrl.SetLogger(operators.Logger())
	testenv.Main(m, &cluster, testenv.Options{})
}
