package faults

import (
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kopf-go/kopf/hack/envtest/assets"
)

// withoutGuards removes the guards one after another, and expects that the experiments fail.
// This takes a build and a control plane for each of them:
//
//	go test ./test/faults -run Guards -without-guards
var withoutGuards = flag.Bool("without-guards", false, "show that each guard of the write protocol has an experiment that fails without it")

// guard is a piece of code that the guarantees depend on.
type guard struct {
	file string // below pkg/reconcile
	code string
	// instead is what remains without the guard.
	instead string
	// plan is an experiment that fails without the guard.
	plan string
}

// guards are the guards of the write protocol by their purpose.
var guards = map[string]guard{
	"other clients' changes: the main write is bound to a version": {
		file: "internal/write/commit.go", plan: "life/k=1/edit-finalizers",
		code:    "text, err := s.bind(merge)",
		instead: "text, err := json.Marshal(merge); if part != \"\" { text, err = s.bind(merge) }",
	},
	"a replaced object: the write of the status is bound to a version": {
		file: "internal/write/commit.go", plan: "results/k=4/replaced",
		code:    "text, err := s.bind(merge)",
		instead: "text, err := s.bind(merge); if part != \"\" { text, err = json.Marshal(merge) }",
	},
	"a replaced object: its uid is compared when it is read": {
		file: "internal/write/session.go", plan: "life/k=2/replaced",
		code:    `if s.state.uid != "" && snapshot.GetUID() != s.state.uid {`,
		instead: `if false {`,
	},
	"a replaced object: the state belongs to a uid": {
		file: "internal/write/state.go", plan: "life/k=3/replaced",
		code:    "if s.uid == uid {",
		instead: "if s.uid != \"\" {",
	},
	"a failed write: the update is kept, and its handlers are not called again": {
		file: "internal/write/commit.go", plan: "retries/k=2/unavailable",
		code:    "if failure := s.reread(ctx, u); failure != nil {",
		instead: "s.state.pending, s.state.edits = nil, nil\nif failure := s.reread(ctx, u); failure != nil {",
	},
	"a failed write: a cycle that has ended with it has ended": {
		file: "pass.go", plan: "resuming/k=6/unavailable",
		code:    "\tp.finishCycle(flushed)\n",
		instead: "",
	},
	"a failed write in a call: the outcomes of the handlers before it are kept": {
		file: "execute.go", plan: "children/k=1/unavailable",
		code:    "p.keepOutcomes(c)\n\t\treturn err",
		instead: "return err",
	},
	"a lost answer: a transformation is not repeated on its own result": {
		file: "internal/write/state.go", plan: "resuming-once/k=3/lost-answer",
		code:    "if patch.Minimal(body.Raw(), f.merge) != nil {",
		instead: "if true {",
	},
	"a late commit: a write that was given up is still expected": {
		file: "internal/write/state.go", plan: "resuming-once/k=3/late",
		code:    "return f.version != body.ResourceVersion()",
		instead: "return true",
	},
	"a timeout: a write that may have been committed is not repeated below the protocol": {
		file: "internal/kube/retry.go", plan: "resuming-once/k=3/timeout",
		code:    "const clientGoRetries = 0",
		instead: "const clientGoRetries = 10",
	},
	"a conflict after the status: that part is not written again": {
		file: "internal/write/commit.go", plan: "patches/k=3/edit-labels",
		code:    "s.state.edits[i].StatusWritten = true",
		instead: "s.state.edits[i].StatusWritten = false",
	},
	"another operator: its base is kept": {
		file: "internal/write/conflict.go", plan: "refusal/k=1/takeover-alive",
		code:    "continues || err != nil {",
		instead: "continues || err == nil {",
	},
	"another operator: its records are kept": {
		file: "internal/write/conflict.go", plan: "retries/k=2/takeover-midway",
		code:    "!hasAdvanced(theirs, u.Cycle.Progress.Load(id))",
		instead: "err == nil",
	},
	"another operator: one outcome of an attempt counts, as a whole": {
		file: "internal/write/conflict.go", plan: "patches/k=2/takeover-alive",
		code:    "return overtaken || u.finished",
		instead: "return overtaken && false",
	},
	"another operator: all writes of a pass respect it": {
		file: "internal/write/commit.go", plan: "children/k=1/takeover-alive",
		code:    "u.changedByOthers = s.changedByOthers\n",
		instead: "",
	},
	"a stalled watch: no pass uses a version older than the last write": {
		file: "internal/write/state.go", plan: "retries/k=2/stall",
		code:    "return err != nil || order < 0",
		instead: "return err != nil && order < 0",
	},
	"a stalled watch: the object is read when the watch is late": {
		file: "internal/write/session.go", plan: "retries/k=3/stall",
		code:    "\"seen\", version)\n\t\treturn s.ReadLive(ctx)",
		instead: "\"seen\", version)\n\t\ts.body = cached.Body()\n\t\treturn Freshness{Fresh: true}, nil",
	},
	"a removed finalizer: the object is released, its version is the same as before": {
		file: "internal/write/commit.go", plan: "events/k=6/stall",
		code:    "\t\ts.state.MarkGone()\n\t\treturn nil\n",
		instead: "\t\treturn nil\n",
	},
	"a restart: a list is consistent": {
		file: "../internal/relist/source.go", plan: "life/k=2/crash-stale",
		code:    "options.ResourceVersion = \"\"\n\toptions.ResourceVersionMatch = \"\"\n",
		instead: "",
	},
	"a takeover: a standby compares versions before it works": {
		file: "workers.go", plan: "retries/k=4/crash-standby",
		code:    "if standby && !e.catchUp(active) {",
		instead: "if standby && false {",
	},
	"a crash: a result is stored before its success": {
		file: "internal/write/commit.go", plan: "results/k=2/crash-after",
		code:    "if err := s.send(ctx, u, \"status\", status, status); err != nil {\n\t\treturn err\n\t}",
		instead: "defer func() { _ = s.send(ctx, u, \"status\", status, status) }()",
	},
	"a rejection: its handler fails, and the others are written": {
		file: "internal/write/commit.go", plan: "refusal",
		code:    "case isRejected(err):",
		instead: "case false:",
	},
	"a change in a cycle: the base is a state that a pass has seen": {
		file: "internal/record/store.go", plan: "life/k=2/edit-spec",
		code:    "k.storeBase(ctx, body, into, e.base, r)",
		instead: "k.storeBase(ctx, body, into, k.Essence(body, nil), r)",
	},
	"a change in a cycle: the state of the first end is stored on the object": {
		file: "internal/record/store.go", plan: "retries/k=3/edit-spec",
		code:    "return k.putCycle(ctx, body, into, open)",
		instead: "return nil",
	},
	"a daemon: the finalizer exists before it starts": {
		file: "internal/plan/plan.go", plan: "background",
		code:    "f.Memory.DaemonsRunning || slices.ContainsFunc(p.Background, needsFinalizer)",
		instead: "f.Memory.DaemonsRunning || false && slices.ContainsFunc(p.Background, needsFinalizer)",
	},
	"a daemon: the finalizer stays until it has ended": {
		file: "internal/plan/decision.go", plan: "background",
		code:    "DaemonsRunning: now.Deleting && c.DaemonsRunning",
		instead: "DaemonsRunning: false",
	},
	"a deletion: the finalizer exists before any handler is called": {
		file: "internal/plan/plan.go", plan: "life",
		code:    "return p.NeedsFinalizer && !p.HasFinalizer && !p.Deleting",
		instead: "return false",
	},
}

// TestGuardsAreWhereTheyAreExpected keeps the list up to date: after changing a guard, check
// its experiment.
func TestGuardsAreWhereTheyAreExpected(t *testing.T) {
	for name, g := range guards {
		t.Run(name, func(t *testing.T) {
			if count := strings.Count(g.source(t), g.code); count != 1 {
				t.Errorf("the code of the guard appears %d times in %s: update it here, and run the test with -without-guards:\n%s", count, g.file, g.code)
			}
			if _, err := parsePlan(g.plan); err != nil {
				t.Error(err)
			}
		})
	}
}

// sampleGuard is removed in every run of the tests, to check that the experiments can fail at
// all. Removing all of them takes minutes: -without-guards.
const sampleGuard = "other clients' changes: the main write is bound to a version"

// TestGuardsAreNeeded builds the experiments without each guard.
func TestGuardsAreNeeded(t *testing.T) {
	for name, g := range guards {
		if !*withoutGuards && name != sampleGuard {
			continue
		}
		t.Run(name, func(t *testing.T) {
			overlay := g.overlay(t)
			build := exec.Command("go", "build", "-overlay", overlay, "./pkg/reconcile/...")
			build.Dir = root(t)
			if output, err := build.CombinedOutput(); err != nil {
				t.Fatalf("the code does not build without the guard:\n%s", output)
			}
			experiment := exec.Command("go", "test", "-overlay", overlay, "-count=1", "./test/faults", "-run", "Plans|Lists|Standby", "-plan", g.plan)
			experiment.Dir = root(t)
			output, err := experiment.CombinedOutput()
			if err == nil {
				t.Errorf("%s passes without the guard", g.plan)
			}
			t.Logf("%s:\n%s", g.plan, firstFailure(string(output)))
		})
	}
}

// overlay returns a file that makes go build the source without the guard.
func (g guard) overlay(t *testing.T) string {
	dir := t.TempDir()
	changed, overlay := filepath.Join(dir, filepath.Base(g.file)), filepath.Join(dir, "overlay.json")
	text, err := json.Marshal(map[string]any{"Replace": map[string]string{g.path(t): changed}})
	if err == nil {
		err = os.WriteFile(overlay, text, 0o600)
	}
	if err == nil {
		err = os.WriteFile(changed, []byte(strings.Replace(g.source(t), g.code, g.instead, 1)), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return overlay
}

func (g guard) source(t *testing.T) string {
	content, err := os.ReadFile(g.path(t))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func (g guard) path(t *testing.T) string { return filepath.Join(root(t), "pkg", "reconcile", g.file) }

func root(t *testing.T) string {
	root, err := assets.Root()
	if err != nil {
		t.Fatal(err)
	}
	return root
}

// firstFailure returns the message of the first failed experiment, without its history.
func firstFailure(output string) string {
	_, failure, _ := strings.Cut(output, "--- FAIL: ")
	failure, _, _ = strings.Cut(failure, "replay:")
	return failure
}
