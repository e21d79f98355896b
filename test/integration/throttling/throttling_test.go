// Package throttling tests how an operator treats a failing API server.
package throttling

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/onsi/gomega"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/test/operators"
	"github.com/kopf-go/kopf/test/testenv"
)

var cluster *testenv.Cluster

func TestMain(m *testing.M) {
	testenv.Main(m, &cluster, testenv.Options{
		Flags: map[string]string{"max-mutating-requests-inflight": "20", "max-requests-inflight": "80"},
	})
}

const handledAnnotation = "kopf.zalando.org/last-handled-configuration"

// failing rejects the writes to one object with an internal error on request.
type failing struct {
	next   http.RoundTripper
	name   string
	sick   *atomic.Bool
	writes *atomic.Int32 // rejected writes
}

func (f failing) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Method != http.MethodPatch || !f.sick.Load() || !strings.HasSuffix(request.URL.Path, "/"+f.name) {
		return f.next.RoundTrip(request)
	}
	f.writes.Add(1)
	return &http.Response{
		StatusCode: http.StatusInternalServerError, Request: request, ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"text/plain"}}, Body: io.NopCloser(strings.NewReader("the disk is full")),
	}, nil
}

// setup runs an operator whose writes to the object "sick" fail.
func setup(t *testing.T, delays ...time.Duration) (namespace string, calls, writes *atomic.Int32, sick *atomic.Bool) {
	calls, writes, sick, namespace = &atomic.Int32{}, &atomic.Int32{}, &atomic.Bool{}, cluster.Namespace(t)
	sick.Store(true)
	registry := kopf.NewRegistry()
	registry.OnCreate(kopf.Resource("kopf.dev", "v1", "kopfexamples"), func(context.Context, *kopf.Change) error {
		calls.Add(1)
		return nil
	}, kopf.ID("create_fn"))
	config := cluster.Config()
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return failing{next, "sick", sick, writes} })
	operators.Start(t, config, namespace, registry, func(o *kopf.Options) { o.Settings.Queueing.ErrorDelays = delays })
	return namespace, calls, writes, sick
}

func TestFailingObjectDoesNotDelayOthers(t *testing.T) {
	g := gomega.NewWithT(t)
	namespace, calls, writes, _ := setup(t, time.Hour)
	sickly := testenv.NewObject("KopfExample", namespace, "sick", nil)
	healthy := testenv.NewObject("KopfExample", namespace, "healthy", nil)
	g.Expect(cluster.Client().Create(t.Context(), sickly)).To(gomega.Succeed())
	g.Eventually(writes.Load).Should(gomega.BeEquivalentTo(1))
	g.Expect(cluster.Client().Create(t.Context(), healthy)).To(gomega.Succeed())
	g.Eventually(cluster.Current(healthy)).Should(testenv.HaveAnnotation(handledAnnotation, gomega.Not(gomega.BeEmpty())))

	sickly.SetLabels(map[string]string{"a": "change"})
	g.Expect(cluster.Client().Update(t.Context(), sickly)).To(gomega.Succeed())
	g.Consistently(writes.Load, 300*time.Millisecond).Should(gomega.BeEquivalentTo(1), "an event must not end the pause")
	g.Expect(calls.Load()).To(gomega.BeEquivalentTo(2), "one call an object")
}

func TestFinishedWorkIsRecordedAfterAnOutage(t *testing.T) {
	g := gomega.NewWithT(t)
	namespace, calls, writes, sick := setup(t, 10*time.Millisecond, 50*time.Millisecond)
	obj := testenv.NewObject("KopfExample", namespace, "sick", nil)
	g.Expect(cluster.Client().Create(t.Context(), obj)).To(gomega.Succeed())
	g.Eventually(writes.Load).Should(gomega.BeNumerically(">=", 3))
	sick.Store(false)
	g.Eventually(cluster.Current(obj)).Should(testenv.HaveAnnotation(handledAnnotation, gomega.Not(gomega.BeEmpty())))
	g.Expect(calls.Load()).To(gomega.BeEquivalentTo(1), "the handler has run, and is not called again")
}
