package kills

import (
	"testing"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/test/testenv"
)

var cluster *testenv.Cluster

func TestMain(m *testing.M) {
	testenv.Main(m, &cluster, testenv.Options{Parallel: 8})
}

var examples = kopf.Resource("kopf.dev", "v1", "kopfexamples")
