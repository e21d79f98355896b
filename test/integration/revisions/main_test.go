// Package revisions tests on a real API server how objects are handled again under another
// revision of a handler.
package revisions

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
	_ = flag.Set("test.parallel", "6") // the tests wait more than they compute
	ctrl.SetLogger(operators.Logger())
	testenv.Main(m, &cluster, testenv.Options{CRDs: []string{"config/crd/kopf.dev", testenv.ExampleCRDs, testenv.FixtureCRDs}})
}

const (
	prefix    = "kopf.zalando.org/"
	handled   = prefix + "last-handled-configuration"
	revisions = prefix + "handled-revisions"
)

var examples = kopf.Resource("kopf.dev", "v1", "kopfexamples")
