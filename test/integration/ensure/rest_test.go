package ensure

import (
	"testing"
	"time"

	"github.com/onsi/gomega"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/test/testenv"
)

// At rest, the only requests are those that continue watches which have expired: none for a
// discovery, and none about children. No other test runs at the same time, because some of them
// install definitions, which every operator looks up.
func TestExpiredWatchesAreAllThatHappensAtRest(t *testing.T) {
	b := newBench(t)
	b.Ensure(shops, b.counted(children), kopf.ID("children"))
	b.start(func(o *kopf.Options) {
		o.Settings.Watching.ServerTimeout = 2 * time.Second   // instead of minutes; a watch of one second counts as refused
		o.Settings.Scanning.Interval = 500 * time.Millisecond // a start looks several times
		o.Settings.Peering.Lifetime = time.Hour               // how often a peering object is looked for that does not exist
	})
	b.expectHandled(b.shop("one", map[string]any{"replicas": int64(1)}))
	calls := b.calls.Load()
	b.expectRenewals(3)
	b.requests.Reset()
	b.expectRenewals(5)
	others := b.requests.Snapshot()
	for key := range others {
		if key.Method == testenv.MethodWatch {
			delete(others, key)
		}
	}
	b.Expect(others).To(gomega.BeEmpty(), b.story)
	b.Expect(b.calls.Load()).To(gomega.Equal(calls))
}

// expectRenewals waits until each watch of the operator was continued so often.
func (b *bench) expectRenewals(number int) {
	b.t.Helper()
	watched := []string{"kopfexamples", "customresourcedefinitions", "deployments", "services", "configmaps", "secrets", "persistentvolumeclaims"}
	b.Eventually(func() (least int) {
		least, got := number, b.requests.Snapshot()
		for _, kind := range watched {
			least = min(least, got[testenv.Key{Method: testenv.MethodWatch, Target: kind}])
		}
		return least
	}).WithTimeout(2*time.Minute).Should(gomega.Equal(number), b.story)
}
