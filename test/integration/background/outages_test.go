package background

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/onsi/gomega"
	"k8s.io/client-go/rest"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/test/testenv"
)

// outage rejects the selected requests with 503 while it lasts.
type outage struct {
	hit func(*http.Request) bool

	mu      sync.Mutex
	lasting bool
	refused int // rejected requests about the object
}

func (o *outage) wrap(next http.RoundTripper) http.RoundTripper {
	return testenv.RoundTripper(func(r *http.Request) (*http.Response, error) {
		if o.refuses(r) {
			return unavailable(r), nil
		}
		return next.RoundTrip(r)
	})
}

func (o *outage) refuses(r *http.Request) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.lasting || !o.hit(r) {
		return false
	}
	if toBad(r) {
		o.refused++
	}
	return true
}

func unavailable(r *http.Request) *http.Response {
	const text = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"ServiceUnavailable","message":"out of order","code":503}`
	return &http.Response{
		StatusCode: http.StatusServiceUnavailable, Status: "503 Service Unavailable", Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(text)),
		ContentLength: int64(len(text)), Request: r,
	}
}

func (o *outage) set(lasting bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.lasting = lasting
}

func (o *outage) count() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.refused
}

func strike(config *rest.Config, hit func(*http.Request) bool) *outage {
	o := &outage{hit: hit}
	config.Wrap(o.wrap)
	return o
}

func toBad(r *http.Request) bool {
	return strings.HasSuffix(strings.TrimSuffix(r.URL.Path, "/status"), "/bad")
}

// outages are the possible failures.
var outages = map[string]struct {
	hit   func(*http.Request) bool
	apart bool // other objects are not affected
}{
	"for the writes of its object":      {func(r *http.Request) bool { return r.Method == http.MethodPatch && toBad(r) }, true},
	"for all requests about its object": {toBad, true},
	"for all writes":                    {func(r *http.Request) bool { return r.Method == http.MethodPatch }, false},
	"for all requests":                  {func(*http.Request) bool { return true }, false},
}

// However long the API fails for an object, its timers wait until their last result is
// written, are not called meanwhile, and continue afterwards.
func TestTimerContinuesAfterAPIFailures(t *testing.T) {
	t.Parallel()
	for name, test := range outages {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			o := strike(b.config, test.hit)
			b.Daemon(examples, b.counted("daemon", b.untilStopped), kopf.ID("daemon"))
			b.Timer(examples, b.counting("timer"), kopf.ID("timer"), kopf.Interval(brief))
			b.start(func(o *kopf.Options) { o.Settings.Queueing.ErrorDelays = []time.Duration{brief} })
			bad, good := b.create("bad", nil), b.create("good", nil)
			b.expectUndisturbed(bad)
			b.expectUndisturbed(good)
			o.set(true)
			b.expectWaiting(o)
			if test.apart {
				b.expectUndisturbed(good)
				b.Eventually(cluster.Events(bad)).Should(gomega.ContainElement(gomega.HavePrefix("Warning ReconcileError: ")), b.logs.String)
				b.Expect(b.logs.With("The object cannot be handled now", `"name"="bad"`)).NotTo(gomega.BeEmpty())
			}
			o.set(false)
			b.expectUndisturbed(bad)
			b.expectUndisturbed(good)
		})
	}
}

// expectWaiting checks that the timer of the affected object is not called, however often
// its result is rejected.
func (b *bench) expectWaiting(o *outage) {
	b.t.Helper()
	b.Eventually(o.count).Should(gomega.BeNumerically(">", 3))
	calls, refused := b.runs.count("timer bad")(), o.count()
	b.Eventually(o.count).Should(gomega.BeNumerically(">", refused+10))
	b.Expect(b.runs.count("timer bad")()).To(gomega.Equal(calls))
}

// Each delay ends with one attempt, and in the end only the last result is written: nothing
// has accumulated.
func TestWritesDoNotAccumulateWhileTheAPIFails(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	o := strike(b.config, func(r *http.Request) bool { return r.Method == http.MethodPatch && toBad(r) })
	for _, id := range []string{"a", "b", "c", "d", "e"} {
		b.Timer(examples, b.counting(id), kopf.ID(id), kopf.Interval(brief))
	}
	b.start(func(o *kopf.Options) { o.Settings.Queueing.ErrorDelays = []time.Duration{brief} })
	bad := b.create("bad", nil)
	b.Eventually(cluster.Current(bad)).Should(testenv.HavePath("status.e", gomega.BeNumerically(">", 2)))
	o.set(true)
	b.Eventually(o.count).Should(gomega.BeNumerically(">", 20))
	o.set(false)
	b.Eventually(cluster.Current(bad)).Should(testenv.HavePath("status.a", gomega.BeNumerically(">=", b.runs.count("a bad")()+5)), b.logs.String)
	pauses := func() int { return len(b.logs.With("The object cannot be handled now", `"name"="bad"`)) }
	b.Eventually(pauses).Should(gomega.Equal(o.count()))
	b.remove(bad)
	b.Eventually(b.runs.running("")).Should(gomega.BeZero())
	b.expectRest()
	total := 0
	for _, id := range []string{"a", "b", "c", "d", "e"} {
		total += b.runs.count(id + " bad")()
	}
	b.Expect(b.writesTo(bad)).To(gomega.BeNumerically("<=", total), "a call costs one write at most")
}
