// Package revisions tests on a real API server how objects are handled again under another
// revision of a handler.
package revisions

import (
	"testing"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/test/testenv"
)

var cluster *testenv.Cluster

func TestMain(m *testing.M) {
	testenv.Main(m, &cluster, testenv.Options{Parallel: 6, CRDs: []string{"config/crd/kopf.dev", testenv.ExampleCRDs, testenv.FixtureCRDs}})
}

const (
	prefix    = "kopf.zalando.org/"
	handled   = prefix + "last-handled-configuration"
	revisions = prefix + "handled-revisions"
)

var examples = kopf.Resource("kopf.dev", "v1", "kopfexamples")
