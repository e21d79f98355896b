package kopftest

import (
	"errors"
	"fmt"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kopf-go/kopf/pkg/kopftest/internal/sweep"
	"github.com/kopf-go/kopf/pkg/model/object"
)

// SweepOption configures a Sweep.
type SweepOption interface{ applyToSweep(*sweepRules) }

type sweepOptionFunc func(*sweepRules)

func (f sweepOptionFunc) applyToSweep(r *sweepRules) { f(r) }

type sweepRules struct {
	recovery time.Duration
	ignored  [][]string
	faults   []sweep.Fault
	workers  int
	clocked  bool
	err      error
}

// Recovery is how much virtual time an operator has after a fault to come as far as without
// it. It must be longer than the pauses between the attempts of the handlers. Default: an hour.
func Recovery(limit time.Duration) SweepOption {
	return sweepOptionFunc(func(r *sweepRules) { r.recovery = limit })
}

// IgnoreField leaves a field of all objects out of the comparison: "status.ticks". Uids, times
// in RFC 3339, and generated names need not be ignored.
func IgnoreField(field string) SweepOption {
	return sweepOptionFunc(func(r *sweepRules) {
		path, err := object.ParsePath(field)
		r.ignored = append(r.ignored, path)
		r.err = errors.Join(r.err, err)
	})
}

// SameClock compares the runs at the same times, for operators that are driven by the clock: that start something every
// hour, for example. Such an operator goes on while a run is given time to recover, so its end would differ rightly.
//
// With this option, a fault costs no additional time: every Settle and Advance ends at the time at which it ends
// without the fault. Recovery has no effect. So the scenario itself must let enough time pass for the retries of the
// operator, before it does or checks what depends on them, and at its end: with runs at every full hour, for example, it
// can end at half past.
func SameClock() SweepOption {
	return sweepOptionFunc(func(r *sweepRules) { r.clocked = true })
}

// OnlyCrashes leaves out lost answers, errors, refusals, and conflicts, so that a sweep takes less
// than half the time.
func OnlyCrashes() SweepOption {
	return sweepOptionFunc(func(r *sweepRules) { r.faults = []sweep.Fault{sweep.CrashBefore, sweep.CrashAfter} })
}

// Sequential tries one case after the other. Default: as many at the same time as Go uses
// processors (GOMAXPROCS), which needs a scenario without package variables and without anything
// else that its runs share.
func Sequential() SweepOption {
	return sweepOptionFunc(func(r *sweepRules) { r.workers = 1 })
}

// Sweep repeats a scenario with a fault at each write of the operator and of its handlers, and
// fails if the end is not the same as without the fault. The faults are: the operator crashes
// before the write, or after it; the answer to the write is lost; the server answers with an
// error although it has committed the write; it refuses the write for once, with code 500; and
// another client has changed the object right before.
//
//	func TestClaimsSurviveCrashes(t *testing.T) {
//		kopftest.Sweep(t, func(t *testing.T, fault kopftest.Option) {
//			h := kopftest.New(t, handlers, fault, kopftest.CRDs("../config/crd"))
//			claim := kopftest.Object(`{apiVersion: example.com/v1, kind: Claim, metadata: {name: one, namespace: ns}}`)
//			h.Create(claim)
//			h.Settle()
//			h.Delete(claim)
//			h.Settle()
//		})
//	}
//
// Each run of the scenario is in its own bubble of virtual time, and several cases are tried at
// the same time; see Sequential. Fakes of external systems must be made in the scenario; they
// survive the crash of an operator, as the real ones do. Sweep compares the objects in the end,
// without what the operator keeps in them for itself, and the effects of handlers. Nothing that
// Effect counts may be done more often than without the fault. The scenario can have its own
// checks, too, if they hold after every fault.
//
// After a crash, the operator is started again in the next Settle or Advance. These also wait
// until the operator has recovered; see Recovery, and SameClock. Each case is a subtest, and can be repeated
// alone by its name. The writes of an object are counted, so that the order in which different
// objects are handled does not matter. After some failures, the sweep ends.
func Sweep(t *testing.T, scenario func(t *testing.T, fault Option), with ...SweepOption) {
	t.Helper()
	rules := &sweepRules{recovery: time.Hour, faults: sweep.All(), workers: runtime.GOMAXPROCS(0)}
	for _, option := range with {
		option.applyToSweep(rules)
	}
	if rules.err != nil {
		t.Fatal(rules.err)
	}
	run := func(t *testing.T, tr *trial) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			scenario(t, tr)
			tr.finish(t)
		})
	}
	defer debug.SetGCPercent(debug.SetGCPercent(gcPercent))
	quiet := &trial{rules: rules}
	run(t, quiet)
	if t.Failed() {
		return
	}
	again := &trial{rules: rules}
	run(t, again)
	if lines := quiet.compare(again); len(lines) > 0 {
		t.Fatalf("two runs of the scenario without a fault are different, so that it cannot show the influence of faults; see IgnoreField:\n%s", indent(lines))
	}

	// Each fault at each write is a case. Their messages are in the order of the cases.
	var cases []*place
	for _, write := range quiet.writes {
		for _, fault := range rules.faults {
			if fault != sweep.Conflict || strings.Contains(write.Body, `"resourceVersion"`) {
				cases = append(cases, &place{fault: fault, write: write})
			}
		}
	}
	outcomes := make([]struct{ passed, missed bool }, len(cases))
	begun := 0
	failures := 0
	missed := 0
	sweep.Each(len(cases), rules.workers, func(i int, finish func()) {
		name := strings.ReplaceAll(cases[i].String(), "/", ".") // a slash would divide it
		outcomes[i].passed = t.Run(name, func(t *testing.T) {
			t.Helper()
			defer finish()
			outcomes[i].missed = !cases[i].try(t, quiet, run)
		})
	}, func(i int) bool {
		begun++
		if outcomes[i].missed {
			missed++
		}
		if !outcomes[i].passed {
			failures++
		}
		return failures < maxFailures
	})
	if begun < len(cases) {
		t.Errorf("The sweep has ended after %d failures. %d of %d cases are left out.", failures, len(cases)-begun, len(cases))
		return
	}
	t.Logf("%d cases at %d writes, without %d that did not happen again", len(cases)-missed, len(quiet.writes), missed)
	if missed > len(cases)/maxMissed {
		t.Errorf("%d of %d cases could not be tried: how often the operator writes depends on chance, "+
			"for example because two handlers write to one object. Make the scenario settle between its steps.", missed, len(cases))
	}
}

// gcPercent makes the garbage collector rarer while many short lives follow each other.
const gcPercent = 800

// maxFailures is the number of failures after which a sweep ends.
const maxFailures = 5

// String names the case.
func (p *place) String() string {
	return fmt.Sprintf("%s write %d of %s", p.fault, p.write.Number, p.write.Object)
}

// maxTries is how often a run is repeated if its writes are others. One case of maxMissed can be
// left out because of that.
const (
	maxTries  = 5
	maxMissed = 10
)

// try runs the scenario with the fault. It returns false if the write did not happen.
func (p *place) try(t *testing.T, quiet *trial, run func(*testing.T, *trial)) (tried bool) {
	t.Helper()
	var tr *trial
	t.Cleanup(func() {
		if t.Failed() && tr.harness != nil {
			t.Log(tr.report(t.Name()))
		}
	})
	for range maxTries {
		tr = &trial{rules: quiet.rules, place: p, quiet: quiet}
		run(t, tr)
		if tr.struck.Load() {
			break
		}
	}
	if !tr.struck.Load() {
		t.Logf("There is no write %d of %s in %d runs: how often the operator writes depends on chance.", p.write.Number, p.write.Object, maxTries)
		return false
	}
	if lines := quiet.compare(tr); len(lines) > 0 {
		t.Errorf("The end is not the same as without the fault:\n%s", indent(lines))
	}
	return true
}

// compare returns what has been done too often, and what is different, in another run.
func (tr *trial) compare(other *trial) []string {
	var lines []string
	for key, count := range other.effects {
		if allowed := tr.effects[key]; count > allowed {
			lines = append(lines, fmt.Sprintf("Done too often: %s, %d instead of %d times", key, count, allowed))
		}
	}
	slices.Sort(lines)
	return append(lines, tr.end.Differences(other.end)...)
}

// report describes a failed run.
func (tr *trial) report(test string) string {
	w := tr.place.write
	var patterns []string
	for part := range strings.SplitSeq(test, "/") {
		patterns = append(patterns, "^"+regexp.QuoteMeta(part)+"$")
	}
	return fmt.Sprintf("%s write %d of %s: %s %s\n%s\nTo repeat this case alone:\n\tgo test -run '%s' .\n"+
		"A crash forgets what is in the memory of the operator, but package variables and what the scenario has made survive.\nWhat has happened:\n%s",
		tr.place.fault.Describe(), w.Number, w.Object, w.Method, w.Path, "\t"+short(w.Body), strings.Join(patterns, "/"), indent(tr.harness.recording.describe()))
}

func indent(lines []string) string { return "\t" + strings.Join(lines, "\n\t") }

// short cuts a long text.
func short(text string) string {
	const limit = 500
	if len(text) > limit {
		return text[:limit] + "…"
	}
	return text
}
