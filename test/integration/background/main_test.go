// Package background tests daemons, timers, indices, and memos on a real API server: one
// file per subject.
package background

import (
	"flag"
	"testing"
	"time"

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
	testenv.Main(m, &cluster, testenv.Options{})
}

const (
	prefix    = "kopf.zalando.org/"
	finalizer = prefix + "KopfFinalizerMarker"
)

const (
	// long is too long for a test, so waiting for it fails.
	long = time.Hour
	// quiet is long enough for an operator to do something unexpected.
	quiet = 300 * time.Millisecond
	// brief is a delay that ends soon.
	brief = 20 * time.Millisecond
)

var (
	examples   = kopf.Resource("kopf.dev", "v1", "kopfexamples")
	noStatuses = kopf.Resource("kopf.dev", "v1", "kopfnostatuses")
)
