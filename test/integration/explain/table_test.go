package explain

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/onsi/gomega"

	"github.com/kopf-go/kopf/pkg/cli/inspect"
	"github.com/kopf-go/kopf/test/testenv"
)

// situation is one that a person asks about, with the lines of the answers. Lines are whole, and
// without indentation.
type situation struct {
	// arrange declares handlers, and brings the object "one" into the situation. It can run an
	// earlier operator.
	arrange func(s *scene)
	// stopped are the lines while no operator runs.
	stopped []string
	// during happens while the operator runs.
	during func(s *scene)
	// running are the lines while it runs, and is asked.
	running []string
}

// nothingDue is what an idle operator says.
const nothingDue = "- Nothing is due for the object."

// TestSituations asks about each situation twice.
func TestSituations(t *testing.T) {
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
	s.has(x.stopped, func() (string, error) { return s.explain("one"), nil })
	s.start()
	if x.during != nil {
		x.during(s)
	}
	at := inspect.Endpoint{URL: "https://" + address, Token: s.token("reader", true)}
	s.has(x.running, func() (string, error) { return s.now("one", at) })
}

// has waits for an answer with all lines.
func (s *scene) has(lines []string, answer func() (string, error)) {
	s.t.Helper()
	s.Expect(lines).NotTo(gomega.BeEmpty())
	s.Eventually(func() ([]string, error) {
		text, err := answer()
		var got []string
		for line := range strings.Lines(neutral(s, text)) {
			got = append(got, strings.TrimSpace(line))
		}
		return got, err
	}).Should(gomega.ContainElements(lines))
}
