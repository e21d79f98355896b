// Package handling tests on a real API server how objects are handled: one file per subject.
package handling

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
	_ = flag.Set("test.parallel", "12")
	ctrl.SetLogger(operators.Logger())
	testenv.Main(m, &cluster, testenv.Options{
		CRDs:  []string{testenv.ExampleCRDs, testenv.FixtureCRDs, "test/integration/handling/testdata"},
		Flags: map[string]string{"enable-admission-plugins": "OwnerReferencesPermissionEnforcement"},
	})
}

const (
	prefix    = "kopf.zalando.org/"
	handled   = prefix + "last-handled-configuration"
	finalizer = prefix + "KopfFinalizerMarker"
)

var (
	examples   = kopf.Resource("kopf.dev", "v1", "kopfexamples")
	noStatuses = kopf.Resource("kopf.dev", "v1", "kopfnostatuses")
	pruneds    = kopf.Resource("kopf.dev", "v1", "kopfpruneds")
	clusters   = kopf.Resource("kopf.dev", "v1", "kopfclusters")
)
