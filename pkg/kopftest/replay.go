package kopftest

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/kubernetes/scheme"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/kopftest/internal/replay"
	"github.com/kopf-go/kopf/pkg/settings"
)

// Replay repeats the decisions of an operator with other handlers, or with other filters of the
// same handlers. The file is a recording of the flag --record, or of Settings.Recording. No
// handler is called: what they have done is in the recorded objects. The test fails if, for some
// recorded state of an object, the reason, the change, or the called handlers are different. It
// also compares the daemons and timers of the object, its handlers of children and of drift, and
// the handlers of watch events.
//
// Replay lists the handlers whose filters cannot be repeated, and does not compare them. Such
// filters calculate with values, of which a recording has only hashes; compare with a constant
// that is new; or read memos or the clock. If the registry has indices, functions as filters are
// not compared either. The options Scheme and Settings apply.
func Replay(t *testing.T, file string, registry *kopf.Registry, with ...Option) {
	t.Helper()
	opened, err := os.Open(file) //nolint:gosec // named by the test
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = opened.Close() }()
	chosen := options{scheme: scheme.Scheme}
	for _, option := range with {
		option.apply(&chosen)
	}
	s := settings.Default()
	for _, change := range chosen.settings {
		change(&s)
	}
	s = s.WithDefaults()
	handlers, err := registry.Declarations().Handlers(chosen.scheme)
	if err != nil {
		t.Fatal(err)
	}
	repeated := &replay.Replay{Handlers: handlers, DiffBase: s.Persistence.DiffBase, Progress: s.Persistence.Progress}
	synctest.Test(t, func(t *testing.T) {
		repeated.Later = func() { <-time.After(laterForFilters) }
		if err := repeated.Run(opened); err != nil {
			t.Fatalf("%s cannot be replayed: %v", file, err)
		}
	})

	t.Logf("%d decisions, %d attempts of handlers", repeated.Decisions, repeated.Outcomes)
	for _, id := range slices.Sorted(maps.Keys(repeated.Unsure)) {
		t.Logf("%s cannot be compared: %s", id, repeated.Unsure[id])
	}
	var lines []string
	for _, one := range repeated.Differences[:min(len(repeated.Differences), maxDifferences)] {
		lines = append(lines, one.String())
	}
	if rest := len(repeated.Differences) - len(lines); rest > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", rest))
	}
	if len(lines) > 0 {
		t.Errorf("%d decisions are different:\n%s", len(repeated.Differences), indent(lines))
	}
}

// laterForFilters is how much virtual time passes between two evaluations of filters. It is no
// multiple of a day or a week.
const laterForFilters = 10*365*24*time.Hour + 29*time.Hour + 31*time.Minute

// maxDifferences is the number of differences that are described.
const maxDifferences = 20
