package explain

import (
	"maps"
	"slices"
	"testing"

	"github.com/kopf-go/kopf/pkg/inspect"
	"github.com/kopf-go/kopf/test/testenv"
)

// situation is one that a person asks about, with the facts in the answers. Their sentences are in the golden
// file.
type situation struct {
	// arrange declares handlers, and brings the object "one" into the situation. It can run an
	// earlier operator.
	arrange func(s *scene)
	// stopped are the facts while no operator runs.
	stopped []string
	// during happens while the operator runs.
	during func(s *scene)
	// running are the facts while it runs, and is asked.
	running []string
}

// TestSituations asks about each situation twice.
func TestSituations(t *testing.T) {
	sentences.Complete(t)
	sentences.Complete(t)
	count := 0
	for _, group := range []map[string]situation{filters, unknowns, changes, attempts, requested, deletions, others, background, ensured, conditioned, refused} {
		for _, name := range slices.Sorted(maps.Keys(group)) {
			count++
			t.Run(name, func(t *testing.T) { group[name].examine(newScene(t)) })
		}
	}
	if count < 30 {
		t.Errorf("there are only %d situations", count)
	}
}

func (x situation) examine(s *scene) {
	s.t.Helper()
	address := testenv.FreeAddress(s.t)
	s.settings.Name, s.settings.Metrics.Address, s.settings.Metrics.Secure = s.namespace+".example.com", address, true
	x.arrange(s)
	s.answers("stopped", x.stopped, s.explained("one"))
	s.start()
	if x.during != nil {
		x.during(s)
	}
	at := inspect.Endpoint{URL: "https://" + address, Token: s.token("reader", true)}
	s.answers("running", x.running, func() (*inspect.Explanation, error) { return s.now("one", at) })
}
