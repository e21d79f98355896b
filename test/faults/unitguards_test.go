package faults

import (
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// unitGuard is a guard of the writer with unit tests that fail without it. The tests
// are those of pkg/reconcile/internal/write whose names begin with the name.
type unitGuard struct{ file, code, instead, tests string }

// unitGuards are the guards of the writer. Some have several parts.
var unitGuards = map[string]unitGuard{
	"01 every patch is bound to a version": {
		"commit.go", "return json.Marshal(patch.ApplyMerge(merge, version))", "_ = version\nreturn json.Marshal(merge)", "TestGuard01",
	},
	"01 every patch is bound to a version: that of the status": {
		"commit.go", "text, err := s.bind(merge)", "text, err := s.bind(merge); if part != \"\" { text, err = json.Marshal(merge) }", "TestGuard01EveryPatch",
	},
	"01 every patch is bound to a version: the main one": {
		"commit.go", "text, err := s.bind(merge)", "text, err := json.Marshal(merge); if part != \"\" { text, err = s.bind(merge) }", "TestGuard01",
	},
	"02 the status is written before the records": {
		"commit.go", "if err := s.send(ctx, u, \"status\", status, status); err != nil {\n\t\treturn err\n\t}",
		"defer func() { _ = s.send(ctx, u, \"status\", status, status) }()", "TestGuard02",
	},
	"03 the object is read after a conflict": {
		"commit.go", "if err := s.reread(ctx, u); err != nil {", "if err := error(nil); err != nil {", "TestGuard03",
	},
	"04 the object is read after an unanswered write": {
		"commit.go", "if failure := s.reread(ctx, u); failure != nil {", "if failure := error(nil); failure != nil {", "TestGuard04",
	},
	"05 no pass begins while a write is uncertain": {
		"session.go", "case s.state.mustRead:", "case false:", "TestGuard05",
	},
	"06 no pass begins below the minimal version": {
		"session.go", "case s.state.isStale(version):", "case false:", "TestGuard06",
	},
	"06 no pass begins below the minimal version: an answer raises it": {
		"commit.go", "\ts.state.confirm(s.body)\n", "\ts.state.mustRead = false\n", "TestGuard06",
	},
	"07 the object is read after the consistency timeout": {
		"session.go", "if left := time.Until(s.state.minVersionAt.Add(s.writer.ConsistencyTimeout)); left > 0 {",
		"if left := max(1, time.Until(s.state.minVersionAt.Add(s.writer.ConsistencyTimeout))); left > 0 {", "TestGuard07",
	},
	"07 the object is read after the consistency timeout: not taken from the watch": {
		"session.go", "\"seen\", version)\n\t\treturn s.ReadLive(ctx)", "\"seen\", version)", "TestGuard07",
	},
	"08 another uid means gone": {
		"session.go", `if s.state.uid != "" && snapshot.GetUID() != s.state.uid {`, "if false {", "TestGuard08",
	},
	"09 the last finalizer means gone": {
		"commit.go", "\t\ts.state.MarkGone()\n\t\treturn nil\n", "\t\treturn nil\n", "TestGuard09TheLast",
	},
	"09 the last finalizer means gone: it is the last one": {
		"update.go", "&& len(finalizers) == 1 &&", "&&", "TestGuard09Another",
	},
	"09 the last finalizer means gone: for good": {
		"commit.go", "s.state.deleted = isDeleted(s.body)", "_ = isDeleted", "TestGuard09NoLater",
	},
	"10 an overtaken record stands": {
		"patches.go", "return s.isOvertaken(ctx, u, id)", "return false, nil", "TestGuard10",
	},
	"10 an overtaken record stands: its edit is dropped": {
		"conflict.go", "return overtaken || u.finished", "_ = overtaken\nreturn u.finished", "TestGuard10",
	},
	"10 an overtaken record stands: for all writes of a pass": {
		"commit.go", "u.changedByOthers = s.changedByOthers\n", "", "TestGuard10AllWrites",
	},
	"11 a finished cycle stands: the base": {
		"conflict.go", "continues || err != nil {", "continues || err == nil {", "TestGuard11",
	},
	"11 a finished cycle stands: the finalizer": {
		"conflict.go", "u.Cycle.Reason != cause.Delete || ", "u.Cycle.Reason != cause.Delete || true || ", "TestGuard11",
	},
	"11 a finished cycle stands: its edits are dropped": {
		"conflict.go", "return overtaken || u.finished", "return overtaken", "TestGuard11",
	},
	"nothing is written to a released object: not by the next write of a pass": {
		"commit.go", "if u.isReleased(s.body, s.writer.finalizer()) {", "if false {", "TestNothingIsWrittenToAReleasedObject",
	},
	"12 an unanswered edit that arrived is not repeated": {
		"state.go", "if patch.Minimal(body.Raw(), f.merge) != nil {", "if true {", "TestGuard12",
	},
	"13 an unanswered write that is bound to the current version is kept": {
		"state.go", "return f.version != body.ResourceVersion()", "return true", "TestGuard13",
	},
	"14 a rejected edit fails its own handler only: its handler fails": {
		"commit.go", "case isRejected(err):", "case false:", "TestGuard14",
	},
	"14 a rejected edit fails its own handler only: the others are written": {
		"refusal.go", "\ts.failHandler(u, next, rejection)\n\ts.state.drop(next)", "\tfor _, edit := range tried {\n\t\ts.failHandler(u, edit, rejection)\n\t\ts.state.drop(edit)\n\t}", "TestGuard14",
	},
	"a rejection that begins meanwhile blames no handler": {
		"refusal.go", "s.dryRunWith(ctx, u, accepted); err != nil {", "s.dryRunWith(ctx, u, accepted); false {", "TestAPolicyThatBegins",
	},
	"15 rejected records blame no handler": {
		"refusal.go", "err != nil || len(suspects) == 0 {", "err != nil && len(suspects) == 0 {", "TestGuard15",
	},
	"16 an empty patch is not sent": {
		"commit.go", "if len(merge) == 0 {", "if false {", "TestGuard16",
	},
	"17 a stopping operator does not end a cycle that others have changed": {
		"update.go", "!(u.Stopping && u.changedByOthers) &&", "", "TestGuard17",
	},
	"18 the finalizer stays: for daemons": {
		"update.go", "return u.Decision.RemoveFinalizer && !u.Decision.DaemonsRunning &&", "return u.Decision.RemoveFinalizer &&", "TestGuard18",
	},
	"18 the finalizer stays: for failures": {
		"update.go", "!u.isHeldByFailure() && (", "(", "TestGuard18",
	},
	"18 the finalizer stays: for handlers that have not finished": {
		"update.go", "&& (u.Cycle == nil || u.Cycle.Progress.Done())", "", "TestGuard18",
	},
	"19 decisions are made again on every version": {
		"conflict.go", "if u.Decide != nil {", "if false {", "TestGuard19",
	},
	"19 decisions are made again on every version: a deletion that is put off keeps its records": {
		"update.go", "(u.Cycle.Reason != cause.Delete || u.Decision.RemoveFinalizer)", "u.Cycle.Reason != \"\"", "TestGuard19DecisionsAreMadeAgainOnEveryVersion",
	},
	"an object is gone only if the API server says so": {
		"session.go", "if !namesObject(notFound, s.target.Key.Name) {", "if false {", "TestAnObjectIsGone",
	},
	"an object is gone only if a list confirms it": {
		"session.go", `case uid != "" && (s.state.uid == "" || uid == s.state.uid):`, `case uid == "-":`, "TestAnObjectIsGone",
	},
	"an object is gone until a later version shows up": {
		"state.go", `return !s.deleted && s.minVersion != "" && version != s.minVersion && !s.isStale(version)`, "return false", "TestALaterVersion",
	},
	"an object is gone for versions from before its end": {
		"state.go", "\ts.MarkGone()\n\ts.NotOlderThan(version)\n", "\ts.MarkGone()\n", "TestALaterVersion",
	},
	"nothing is written to a released object": {
		"conflict.go", "if u.isReleased(body, s.writer.finalizer()) {", "if false {", "TestNothingIsWrittenToAReleasedObject",
	},
	"an edit is written once: a conflict of the records comes after it": {
		"commit.go", "s.state.finishEdits()", "_ = 0", "TestConflictOfTheRecords|TestRejectionOfTheRecords",
	},
	"the status follows its definition: it is a subresource now": {
		"commit.go", "if err := s.writeDroppedStatus(ctx, u, merge, main); err != nil {", "if err := error(nil); err != nil {", "TestResultIsStoredWhenTheStatusBecomes",
	},
	"the status follows its definition: it is no longer a subresource": {
		"commit.go", "if !isStatusUnserved(err, confirmed) {", "if true {", "TestResultIsStoredWhenTheStatusIsNoLonger",
	},
	"the status follows its definition: the other parts of the edits are not repeated": {
		"dropped.go", "s.state.edits = statusOf(s.state.edits, patch.Minimal(s.body.Raw(), theirs))", "_ = theirs", "TestDroppedStatus",
	},
	"the status follows its definition: it is a subresource although it was not found": {
		"dropped.go", "if object.Equal(patch.Minimal(s.body.Raw(), merge), merge) {", "if _ = object.Equal; false {", "TestSuccessIsNotRecorded",
	},
	"an edit is written completely: its status, when a deletion is put off": {
		"commit.go", "if separate && !u.deletesObject(s.body, s.writer.finalizer()) {", "if separate {", "TestStatusIsWritten",
	},
}

// guard returns the same as one of the experiments' guards, without an experiment.
func (g unitGuard) guard() guard {
	return guard{file: "internal/write/" + g.file, code: g.code, instead: g.instead}
}

// TestUnitGuardsAreWhereTheyAreExpected fails when the code of a guard has changed:
// write down how it looks now, and run TestUnitGuardsAreNeeded with -without-guards.
func TestUnitGuardsAreWhereTheyAreExpected(t *testing.T) {
	for name, g := range unitGuards {
		if count := strings.Count(g.guard().source(t), g.code); count != 1 {
			t.Errorf("%s: the code of the guard appears %d times in %s:\n%s", name, count, g.file, g.code)
		}
	}
}

// sampleUnitGuard is removed in every run of the tests.
const sampleUnitGuard = "09 the last finalizer means gone"

// TestUnitGuardsAreNeeded removes each guard, and expects that its unit tests fail. The
// log names all tests that fail. No cluster is needed for it:
//
//	go test ./test/faults -run UnitGuards -without-guards -v
func TestUnitGuardsAreNeeded(t *testing.T) {
	failed := regexp.MustCompile(`(?m)^--- FAIL: (\w+)`)
	for name, g := range unitGuards {
		if !*withoutGuards && name != sampleUnitGuard {
			continue
		}
		t.Run(name, func(t *testing.T) {
			test := exec.Command("go", "test", "-overlay", g.guard().overlay(t), "-count=1", "-vet=off", "./pkg/reconcile/internal/write")
			test.Dir = root(t)
			output, err := test.CombinedOutput()
			if err == nil {
				t.Fatal("all tests pass without the guard")
			}
			var others []string
			own := 0
			for _, match := range failed.FindAllStringSubmatch(string(output), -1) {
				if found, _ := regexp.MatchString("^("+g.tests+")", match[1]); found {
					own++
				} else {
					others = append(others, match[1])
				}
			}
			if own == 0 {
				t.Errorf("%s passes without the guard:\n%s", g.tests, output)
			}
			t.Logf("%s: %d; others that fail: %q", g.tests, own, others)
		})
	}
}
