package kills

import (
	"flag"
	"testing"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/test/operators"
	"github.com/kopf-go/kopf/test/testenv"
)

var cluster *testenv.Cluster

func TestMain(m *testing.M) {
	// The tests wait more than they compute. A flag on the command line takes precedence.
	_ = flag.Set("test.parallel", "8")
	ctrl.SetLogger(operators.Logger())
	testenv.Main(m, &cluster, testenv.Options{})
}

var examples = kopf.Resource("kopf.dev", "v1", "kopfexamples")
