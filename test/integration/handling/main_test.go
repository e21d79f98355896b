// Package handling tests on a real API server how objects are handled: one file per subject.
package handling

import (
	"testing"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/test/testenv"
)

var cluster *testenv.Cluster

func TestMain(m *testing.M) {
	testenv.Main(m, &cluster, testenv.Options{
		Parallel: 12,
		CRDs:     []string{testenv.ExampleCRDs, testenv.FixtureCRDs, "test/integration/handling/testdata"},
		Flags:    map[string]string{"enable-admission-plugins": "OwnerReferencesPermissionEnforcement"},
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
