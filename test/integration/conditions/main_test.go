// Package conditions tests on a real API server that the standard conditions of objects agree
// with what their handlers have come to: as kubectl wait sees it, and as kstatus does.
package conditions

import (
	"testing"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/test/testenv"
)

var cluster *testenv.Cluster

func TestMain(m *testing.M) {
	testenv.Main(m, &cluster, testenv.Options{Parallel: 12, CRDs: []string{
		testenv.ExampleCRDs, testenv.FixtureCRDs, "config/crd/kopf.dev", "test/integration/conditions/testdata",
	}})
}

var (
	widgets = kopf.Resource("conditions.example.com", "v1", "widgets")
	plains  = kopf.Resource("conditions.example.com", "v1", "plains")
	picks   = kopf.Resource("conditions.example.com", "v1", "picks")
)
