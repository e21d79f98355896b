package outages

import (
	"net/http"
	"testing"
	"time"

	"github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kopf-go/kopf/test/testenv"
)

// lasting is the duration of an outage.
const lasting = 1 * time.Second

// faults are the possible failures of a request in the API server or the network.
var faults = map[string]testenv.Fault{
	"429":                     testenv.Answer(http.StatusTooManyRequests, "TooManyRequests", 1),
	"429 at once":             testenv.Answer(http.StatusTooManyRequests, "TooManyRequests", 0),
	"500":                     testenv.Answer(http.StatusInternalServerError, "InternalError", 0),
	"503":                     testenv.Answer(http.StatusServiceUnavailable, "ServiceUnavailable", 0),
	"503 with a pause":        testenv.Answer(http.StatusServiceUnavailable, "ServiceUnavailable", 1),
	"504 after it was done":   testenv.After(testenv.Answer(http.StatusGatewayTimeout, "Timeout", 1)),
	"500 after it was done":   testenv.After(testenv.Answer(http.StatusInternalServerError, "ServerTimeout", 1)),
	"refused":                 testenv.Refuse,
	"reset":                   testenv.Reset,
	"reset after it was done": testenv.Lose,
}

// targets are the requests that can be affected.
var targets = map[string]func(testenv.Request) bool{
	"writes":     func(r testenv.Request) bool { return r.Method == http.MethodPatch },
	"reads":      func(r testenv.Request) bool { return r.Method == http.MethodGet && r.Resource != "" },
	"watches":    func(r testenv.Request) bool { return r.Method == testenv.MethodWatch },
	"lists":      func(r testenv.Request) bool { return r.Method == testenv.MethodList },
	"everything": func(testenv.Request) bool { return true },
}

// ofObjects matches the requests about the objects of the tests.
func (b *bench) ofObjects() int {
	count := 0
	for _, r := range b.requests.Requests() {
		if r.Resource == "kopfexamples" {
			count++
		}
	}
	return count
}

// most is the maximum number of requests about one object in an outage. Its delays are 100,
// 200, and then 400 ms; after each, there are a write and a read with two attempts each, and
// the watch retries as often. That makes 40, plus requests in flight.
const most = 60

func TestEverythingIsHandledAfterAnOutage(t *testing.T) {
	t.Parallel()
	for target, hits := range targets {
		for name, fault := range faults {
			t.Run(target+" "+name, func(t *testing.T) {
				b := newBench(t)
				b.start()
				b.ready()
				changed, leaving := b.create("changed"), b.create("leaving")
				b.settled(changed, 1)
				b.settled(leaving, 1)

				b.faults.Begin(fault, hits)
				b.requests.Reset()
				b.wish(changed, "more")
				b.Expect(cluster.Client().Delete(t.Context(), leaving)).To(gomega.Succeed())
				b.last()
				if requests := b.ofObjects(); requests > 2*most {
					t.Errorf("%d requests:\n%s", requests, b.requests)
				}
				b.faults.Heal()

				created := b.create("created")
				b.Eventually(cluster.Exists(leaving)).Should(gomega.BeFalse())
				b.settled(changed, 2)
				b.settled(created, 1)
				b.Eventually(b.problems).Should(gomega.BeEmpty())
				b.onceEach("create changed", "create leaving", "create created", "update changed", "delete leaving")
			})
		}
	}
}

// settled waits until an object was handled the given number of times, and its transformation
// has run exactly as often.
func (b *bench) settled(object *unstructured.Unstructured, times int64) {
	b.t.Helper()
	b.Eventually(cluster.Current(object)).Should(gomega.And(
		testenv.HavePath("spec.seen", times),
		testenv.HaveAnnotation(handled, gomega.ContainSubstring(`"seen":`)),
	), b.requests.String)
}

// last waits for the duration of the outage.
func (b *bench) last() {
	select {
	case <-time.After(lasting):
	case <-b.t.Context().Done():
	}
}

func (b *bench) onceEach(calls ...string) {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	want := map[string]int{}
	for _, call := range calls {
		want[call] = 1
	}
	b.Expect(b.calls).To(gomega.Equal(want))
}
