// Package kinds tests on a real API server that children of every built-in kind, with every field
// set, stay what a function of kopf.Ensure has returned.
//
// A generator makes the children from the schemas of the API server. What they do not say is in tables: the values of
// fields (rules), the fields that exclude each other (unions), those that cannot be changed (immutable), and those that
// are not stored (unstored). They are for the newest release of Kubernetes that is supported: a new field without a valid
// value, or one that is not stored, fails a test.
package kinds

import (
	"testing"

	"github.com/kopf-go/kopf/test/testenv"
)

var cluster *testenv.Cluster

func TestMain(m *testing.M) {
	testenv.Main(m, &cluster, testenv.Options{Parallel: 8})
}
