// Package background tests daemons, timers, indices, and memos on a real API server: one
// file per subject.
package background

import (
	"testing"
	"time"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/test/testenv"
)

var cluster *testenv.Cluster

func TestMain(m *testing.M) {
	testenv.Main(m, &cluster, testenv.Options{Parallel: 12})
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
