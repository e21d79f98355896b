// Package background shows on a real API server what becomes of daemons, timers,
// indices and memos, and of their objects: one file a subject.
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
	// The tests wait more than they compute. The command line still wins.
	_ = flag.Set("test.parallel", "12")
	ctrl.SetLogger(operators.Logger())
	testenv.Main(m, &cluster, testenv.Options{})
}

const (
	prefix    = "kopf.zalando.org/"
	finalizer = prefix + "KopfFinalizerMarker"
)

const (
	// long is too long for a test: whoever waits so long fails.
	long = time.Hour
	// quiet is longer than it takes an operator to do what it should not.
	quiet = 300 * time.Millisecond
	// brief is for pauses that are to be over soon.
	brief = 20 * time.Millisecond
)

var (
	examples   = kopf.Resource("kopf.dev", "v1", "kopfexamples")
	noStatuses = kopf.Resource("kopf.dev", "v1", "kopfnostatuses")
)
