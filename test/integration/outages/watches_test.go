package outages

import (
	"net/http"
	"strings"
	"testing"

	"github.com/onsi/gomega"

	"github.com/kopf-go/kopf/test/testenv"
)

// The state and the log report which watch does not continue and why, and when it continues.
func TestInterruptedWatchIsReported(t *testing.T) {
	t.Parallel()
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.start()
			b.ready()
			b.Expect(b.problems()).To(gomega.BeEmpty())
			b.faults.Begin(fault, targets["everything"])
			b.Eventually(b.problems).Should(gomega.ConsistOf(gomega.HavePrefix("kopfexamples.v1.kopf.dev in " + b.namespace + ": ")))
			b.faults.Heal()
			b.Eventually(b.problems).Should(gomega.BeEmpty())
		})
	}
}

// An operator that starts while the API server rejects lists and watches waits for it, and then
// handles everything.
func TestOperatorWaitsForAFailingServerAtStartup(t *testing.T) {
	t.Parallel()
	about := func(r testenv.Request) bool { return r.Resource == "kopfexamples" }
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			object := b.create("early")
			b.faults.Begin(fault, about)
			b.start()
			b.Eventually(func() bool { return b.engine.WatchStatuses() != nil && len(b.problems()) == 1 }).Should(gomega.BeTrue())
			b.Expect(b.engine.Ready()).NotTo(gomega.BeClosed())
			b.last()
			if requests := b.ofObjects(); requests > most {
				t.Errorf("%d requests:\n%s", requests, b.requests)
			}
			b.faults.Heal()
			b.ready()
			b.settled(object, 1)
			b.onceEach("create early")
		})
	}
}

// Even the served resources may be unknown at startup.
func TestOperatorWaitsForAnUnreachableServerAtStartup(t *testing.T) {
	for name, fault := range map[string]testenv.Fault{"refused": testenv.Refuse, "503": faults["503"], "429": faults["429"]} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			object := b.create("early")
			b.faults.Begin(fault, targets["everything"])
			b.start()
			b.last()
			b.faults.Heal()
			b.ready()
			b.settled(object, 1)
			b.onceEach("create early")
		})
	}
}

// interruptions are the ordinary ends of watches.
var interruptions = map[string]testenv.Fault{
	"410":               testenv.Answer(http.StatusGone, "Expired", 0),
	"ended immediately": testenv.Close,
}

func TestInterruptedWatchesAreRestarted(t *testing.T) {
	t.Parallel()
	for name, fault := range interruptions {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.start()
			b.ready()
			changed, leaving := b.create("changed"), b.create("leaving")
			b.settled(changed, 1)
			b.settled(leaving, 1)
			b.requests.Reset()
			b.faults.Begin(fault, targets["watches"])
			b.wish(changed, "more")
			b.Expect(cluster.Client().Delete(t.Context(), leaving)).To(gomega.Succeed())
			b.last()
			if requests := b.ofObjects(); requests > most {
				t.Errorf("%d requests:\n%s", requests, b.requests)
			}
			b.faults.Heal()
			created := b.create("created")
			b.Eventually(cluster.Exists(leaving)).Should(gomega.BeFalse())
			b.settled(changed, 2)
			b.settled(created, 1)
			b.onceEach("create changed", "create leaving", "create created", "update changed", "delete leaving")
		})
	}
}

// Watches that break again and again do not lose events, and the objects are not listed again: the API server still
// knows the last one that was shown.
func TestFrequentlyInterruptedWatchesLoseNothing(t *testing.T) {
	b := newBench(t)
	b.start()
	b.ready()
	object := b.create("one")
	b.settled(object, 1)
	b.requests.Reset()
	for i, wish := range []string{"a", "b", "c", "d", "e"} {
		b.faults.Cut(targets["watches"])
		b.wish(object, wish)
		b.settled(object, int64(i)+2)
	}
	b.Expect(b.called("update", "one")).To(gomega.Equal(5))
	b.Expect(b.problems()).To(gomega.BeEmpty())
	for _, request := range b.requests.Requests() {
		if request.Resource == "kopfexamples" && (strings.Contains(request.URI, "sendInitialEvents") ||
			request.Method == testenv.MethodList && !strings.Contains(request.URI, "metadata.name")) {
			t.Errorf("all objects are listed: %s", request)
		}
	}
}

// An operator stops on request, whatever it is waiting for.
func TestOperatorStopsDuringAnOutage(t *testing.T) {
	t.Parallel()
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.start()
			b.ready()
			object := b.create("one")
			b.settled(object, 1)
			b.faults.Begin(fault, targets["everything"])
			b.wish(object, "more")
			b.last()
		}) // waits for the end of the engine
	}
}
