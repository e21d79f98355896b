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

// withoutGuards takes the guards out, one after another, and expects that the
// experiments notice. It takes a build and a control plane for each of them:
//
//	go test ./test/faults -run Guards -without-guards
var withoutGuards = flag.Bool("without-guards", false, "show that each guard of the write protocol has an experiment that fails without it")

// guard is a piece of code without which the guarantees do not hold.
type guard struct {
	file string // below pkg/reconcile
	code string
	// instead is what remains without the guard.
	instead string
	// plan is an experiment that fails then.
	plan string
}

// guards are those of the write protocol, by what they are for.
var guards = map[string]guard{
	"other people's changes: the main write is bound to a version": {
		file: "write.go", plan: "life/k=1/edit-finalizers",
		code:    "text, err := p.bound(merge)",
		instead: "text, err := json.Marshal(merge); if subresource != \"\" { text, err = p.bound(merge) }",
	},
	"a replaced object: the write of the status is bound to a version": {
		file: "write.go", plan: "results/k=4/replaced",
		code:    "text, err := p.bound(merge)",
		instead: "text, err := p.bound(merge); if subresource != \"\" { text, err = json.Marshal(merge) }",
	},
	"a replaced object: its uid is looked at when it is read": {
		file: "observe.go", plan: "life/k=2/replaced",
		code:    `case p.memory.uid != "" && snapshot.GetUID() != p.memory.uid:`,
		instead: `case false:`,
	},
	"a replaced object: the memory belongs to a uid": {
		file: "memory.go", plan: "life/k=3/replaced",
		code:    "if m.uid == uid {",
		instead: "if m.uid != \"\" {",
	},
	"a failed write: the intent is kept, and its handlers are not called again": {
		file: "write.go", plan: "retries/k=2/unavailable",
		code:    "if failure := p.refresh(ctx, in); failure != nil {",
		instead: "p.memory.pending, p.memory.unsent = nil, nil\nif failure := p.refresh(ctx, in); failure != nil {",
	},
	"a failed write: what has ended with it has ended": {
		file: "write.go", plan: "resuming/k=6/unavailable",
		code:    "p.conclude(in)\n",
		instead: "if !p.foreign { p.conclude(in) }\n",
	},
	"a lost answer: a transformation is not repeated on its own result": {
		file: "write.go", plan: "resuming-once/k=3/lost-answer",
		code:    "p.memory.unsent = a.settled(p.memory.unsent)",
		instead: "_ = a",
	},
	"a late commit: a write that was given up is expected still": {
		file: "write.go", plan: "resuming-once/k=3/late",
		code:    "return a.version != body.ResourceVersion()",
		instead: "return true",
	},
	"a timeout: a write that may have been committed is not repeated below the protocol": {
		file: "internal/kube/retry.go", plan: "resuming-once/k=3/timeout",
		code:    "const clientGoRetries = 0",
		instead: "const clientGoRetries = 10",
	},
	"a conflict after the status: that part is not written again": {
		file: "write.go", plan: "patches/k=3/edit-labels",
		code:    "p.memory.unsent[i].StatusWritten = true",
		instead: "p.memory.unsent[i].StatusWritten = false",
	},
	"another operator: its base stands": {
		file: "concede.go", plan: "refusal/k=1/takeover-alive",
		code:    "if !released && object.Equal(base, in.base) {",
		instead: "if !released && (object.Equal(base, in.base) || true) {",
	},
	"another operator: its records stand": {
		file: "concede.go", plan: "retries/k=2/takeover-midway",
		code:    "return !theirs.Equal(in.cycle.progress.Load(id).Stored()), nil",
		instead: "return !theirs.Equal(theirs), nil",
	},
	"another operator: one outcome of an attempt counts, as a whole": {
		file: "concede.go", plan: "patches/k=2/takeover-alive",
		code:    "return overtaken && err == nil || in.finished",
		instead: "return overtaken && false",
	},
	"another operator: all writes of a pass know of it": {
		file: "record.go", plan: "checkpoints/k=2/takeover-alive",
		code:    ", foreign: p.foreign}",
		instead: "}",
	},
	"a stalled watch: nothing happens on a version older than the last write": {
		file: "memory.go", plan: "retries/k=2/stall",
		code:    "return err != nil || order < 0",
		instead: "return err != nil && order < 0",
	},
	"a stalled watch: the object is read when the watch is late": {
		file: "observe.go", plan: "retries/k=3/stall",
		code:    "p.log.V(1).Info(\"The watch is late; the object is read directly.\", \"expected\", m.floor, \"seen\", version)\n\t\treturn p.readLive(ctx)",
		instead: "p.body = snapshot.Body()\n\t\treturn true, 0, nil",
	},
	"a removed finalizer: the object is released, its version is the same as before": {
		file: "write.go", plan: "events/k=6/stall",
		code:    "if last {\n\t\tp.release()",
		instead: "if last {",
	},
	"a restart: a list is consistent": {
		file: "internal/kube/list.go", plan: "life/k=2/crash-stale",
		code:    `options.ResourceVersion, options.ResourceVersionMatch = "", ""`,
		instead: "",
	},
	"a takeover: a standby looks at what there is before it works": {
		file: "work.go", plan: "retries/k=4/crash-standby",
		code:    "if standby && !e.caughtUp(active) {",
		instead: "if standby && false {",
	},
	"a crash: a result is stored before the success is": {
		file: "write.go", plan: "results/k=2/crash-after",
		code:    "if err := p.send(ctx, in, \"status\", status, status); err != nil {\n\t\treturn err\n\t}",
		instead: "defer func() { _ = p.send(ctx, in, \"status\", status, status) }()",
	},
	"a refusal: the handler is to blame, and the rest goes on": {
		file: "write.go", plan: "refusal",
		code:    "case refused(err):",
		instead: "case false:",
	},
	"a change in a cycle: the base is what the first pass has seen": {
		file: "intent.go", plan: "life/k=2/edit-spec",
		code:    "return p.storeBase(ctx, body, into, c.first)",
		instead: "return p.storeBase(ctx, body, into, p.Settings.Persistence.Progress.Clear(p.Settings.Persistence.DiffBase.Build(body, p.fields)))",
	},
	"a change in a cycle: what the first pass has seen is kept on the object": {
		file: "first.go", plan: "retries/k=3/edit-spec",
		code:    "return keeper.StoreCycle(ctx, body, into, first)",
		instead: "_ = keeper\nreturn nil",
	},
	"a daemon: the finalizer is there before it starts": {
		file: "attend.go", plan: "background",
		code:    "c.wanted = c.wanted || b.group.HasRunningDaemons() || slices.ContainsFunc(c.companions, b.group.NeedsFinalizer)",
		instead: "c.wanted = c.wanted || b.group.HasRunningDaemons() || false && slices.ContainsFunc(c.companions, b.group.NeedsFinalizer)",
	},
	"a daemon: the finalizer stays until it has ended": {
		file: "record.go", plan: "background",
		code:    "in.awaits = c.deleting && p.awaited()",
		instead: "in.awaits = false",
	},
	"a deletion: the finalizer is there before any handler is called": {
		file: "cycle.go", plan: "life",
		code:    "return c.wanted && !c.held && !c.deleting",
		instead: "return false",
	},
}

// TestGuardsAreWhereTheyAreExpected keeps the list true: who changes a guard has
// to look at its experiment.
func TestGuardsAreWhereTheyAreExpected(t *testing.T) {
	for name, g := range guards {
		t.Run(name, func(t *testing.T) {
			if count := strings.Count(g.source(t), g.code); count != 1 {
				t.Errorf("the code of the guard is %d times in %s: write down how it looks now, and run the test with -without-guards:\n%s", count, g.file, g.code)
			}
			if _, err := parsePlan(g.plan); err != nil {
				t.Error(err)
			}
		})
	}
}

// sampleGuard is the one that is taken out in every run of the tests, to see that
// the experiments can fail at all. All of them take minutes: -without-guards.
const sampleGuard = "other people's changes: the main write is bound to a version"

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

// overlay makes a file that tells go of the source without the guard.
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

// firstFailure is what the first failed experiment says, without its history.
func firstFailure(output string) string {
	_, failure, _ := strings.Cut(output, "--- FAIL: ")
	failure, _, _ = strings.Cut(failure, "replay:")
	return failure
}
