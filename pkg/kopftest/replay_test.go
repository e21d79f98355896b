package kopftest_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/util/json"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/kopftest"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/selector"
	"github.com/kopf-go/kopf/pkg/reconcile/recording"
	"github.com/kopf-go/kopf/pkg/settings"
)

func succeed(context.Context, *kopf.Change) error { return nil }

// registryOf returns a registry with handlers.
func registryOf(declare func(r *kopf.Registry)) *kopf.Registry { return declaring(declare)() }

// recorded are handlers with filters of many kinds.
func recorded(r *kopf.Registry) {
	r.OnCreate(examples, succeed, kopf.ID("create"))
	r.OnUpdate(examples, succeed, kopf.ID("update"), kopf.Labels(map[string]kopf.Matcher{"tier": kopf.Equal("gold")}))
	r.OnField(examples, "spec.size", succeed, kopf.ID("resize"))
	r.OnDelete(examples, succeed, kopf.ID("delete"))
	r.OnResume(examples, succeed, kopf.ID("resume"))
	r.OnEvent(examples, func(context.Context, *kopf.WatchEvent) error { return nil }, kopf.ID("event"), kopf.Annotations(map[string]kopf.Matcher{"watch": kopf.Present()}))
	r.Timer(examples, func(context.Context, *kopf.Tick) error { return nil }, kopf.ID("tick"), kopf.Interval(time.Hour), kopf.Field("spec.period"))
}

// record runs an operator over the life of some objects, and returns its recording.
func record(t *testing.T, declare func(r *kopf.Registry), fields ...string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "recording")
	inVirtualTime(t, declare, func(t *testing.T, h *kopftest.Harness) {
		for i := range 5 {
			one := example(fmt.Sprintf("object-%d", i))
			one.SetLabels(map[string]string{"tier": []string{"gold", "secret-tier"}[i%2]})
			one.SetAnnotations(map[string]string{"token": "secret-token"})
			h.Create(one)
			h.Settle()
			h.Patch(one, `{"spec":{"size":7,"password":"secret-password"},"metadata":{"annotations":{"watch":"yes"}}}`)
			h.Settle()
			h.Patch(one, `{"spec":{"period":"secret-period"}}`)
			h.Settle()
			if i%2 == 0 {
				h.Delete(one)
				h.Settle()
			}
		}
		h.Stop()
	}, kopftest.Settings(func(s *kopf.Settings) { s.Recording.File, s.Recording.Fields = file, fields }))
	return file
}

// The same handlers make the same decisions from hashes. The file is for its owner only, and has
// no values.
func TestReplayOfTheSameHandlers(t *testing.T) {
	file := record(t, recorded)
	kopftest.Replay(t, file, registryOf(recorded))
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("got %v, %v", info.Mode(), err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, unwanted := range []string{"secret", "object-", `"ns"`} {
		if strings.Contains(string(text), unwanted) {
			t.Errorf("the recording contains %s", unwanted)
		}
	}
	for _, wanted := range []string{`"gold"`, `"due":["update"`, `"resize/spec.size"`, `"reason":"delete"`, `"background":["tick`, `"due":["event"]`, `"result":"succeeded"`} {
		if !strings.Contains(string(text), wanted) {
			t.Errorf("the recording does not contain %s", wanted)
		}
	}
	if t.Failed() {
		t.Logf("%s", text)
	}
}

// A changed filter is found, with the state for which it makes a difference.
func TestReplayFindsChangedFilters(t *testing.T) {
	file := record(t, recorded)
	tests := map[string]struct {
		change func(r *kopf.Registry)
		want   string
	}{
		"another label": {
			func(r *kopf.Registry) {
				r.OnUpdate(examples, succeed, kopf.ID("update"), kopf.Labels(map[string]kopf.Matcher{"class": kopf.Equal("gold")}))
			}, "update was called for the update, and is not now: the label class does not match; declared at",
		},
		"no label":      {func(r *kopf.Registry) { r.OnUpdate(examples, succeed, kopf.ID("update")) }, "update was not called for the update, and is now"},
		"another field": {func(r *kopf.Registry) { r.OnField(examples, "spec.password", succeed, kopf.ID("resize")) }, "resize/spec.size was called for the create, and is not now: it is not declared"},
		"a timer": {func(r *kopf.Registry) {
			r.Timer(examples, func(context.Context, *kopf.Tick) error { return nil }, kopf.ID("tick"), kopf.Interval(time.Hour))
		}, "tick was not running"},
		"an event": {func(r *kopf.Registry) {
			r.OnEvent(examples, func(context.Context, *kopf.WatchEvent) error { return nil }, kopf.ID("event"))
		}, "event was not called for the event ADDED, and is now"},
		"a field of the status": {func(r *kopf.Registry) { r.OnField(examples, "metadata.labels.tier", succeed, kopf.ID("relabel")) }, "relabel"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			passed, output := runAlone(t, func(t *testing.T) { kopftest.Replay(t, file, registryOf(test.change)) })
			if passed || !strings.Contains(output, test.want) {
				t.Errorf("there is no %q in:\n%s", test.want, output)
			}
		})
	}
}

// Filters that cannot be repeated are named, and not compared.
func TestReplayNamesWhatItCannotRepeat(t *testing.T) {
	size := func(a kopf.Arguments) bool {
		size, _ := a.Spec().Int64("size")
		return size == 7
	}
	calculating := func(r *kopf.Registry) { r.OnUpdate(examples, succeed, kopf.ID("update"), kopf.When(size)) }
	dated := func(r *kopf.Registry) {
		r.OnUpdate(examples, succeed, kopf.ID("update"), kopf.When(func(kopf.Arguments) bool { return time.Now().Year() < 2005 }))
	}
	remembering := func(r *kopf.Registry) {
		r.OnUpdate(examples, succeed, kopf.ID("update"), kopf.When(func(a kopf.Arguments) bool { return a.Memo() != nil }))
	}
	constant := func(r *kopf.Registry) {
		r.OnUpdate(examples, succeed, kopf.ID("update"), kopf.Labels(map[string]kopf.Matcher{"tier": kopf.Equal("silver")}))
	}
	tests := map[string]struct {
		was, is func(r *kopf.Registry)
		want    string
	}{
		"values":         {calculating, calculating, "calculates with values"},
		"the clock":      {dated, dated, "depends on the time"},
		"memos":          {remembering, remembering, "reads a memo"},
		"a new constant": {recorded, constant, "compares with silver"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			file := record(t, test.was)
			_, output := runAlone(t, func(t *testing.T) {
				kopftest.Replay(t, file, registryOf(test.is))
				t.Error("for the output")
			})
			if !strings.Contains(output, "update cannot be compared: ") || !strings.Contains(output, test.want) || strings.Contains(output, "update was") {
				t.Errorf("got %s", output)
			}
		})
	}
	t.Run("a readable field", func(t *testing.T) {
		file := record(t, calculating, "spec.size")
		opposite := func(r *kopf.Registry) {
			r.OnUpdate(examples, succeed, kopf.ID("update"), kopf.When(func(a kopf.Arguments) bool { return !size(a) }))
		}
		kopftest.Replay(t, file, registryOf(calculating))
		passed, output := runAlone(t, func(t *testing.T) { kopftest.Replay(t, file, registryOf(opposite)) })
		if passed || !strings.Contains(output, "update was called for the update, and is not now") {
			t.Errorf("got %s", output)
		}
	})
}

// A long stream is recorded and replayed, and one state in it makes the difference.
func TestReplayOfManyEvents(t *testing.T) {
	const events = 10_000
	handlers, err := registryOf(recorded).Declarations().Handlers(scheme.Scheme)
	if err != nil {
		t.Fatal(err)
	}
	stores := settings.Default().WithDefaults().Persistence
	file := filepath.Join(t.TempDir(), "recording")
	recorder, err := recording.Open(recording.Options{File: file, Handlers: handlers, DiffBase: stores.DiffBase, Progress: stores.Progress, Logger: logr.Discard()})
	if err != nil {
		t.Fatal(err)
	}
	of := selector.Resource{Group: "kopf.dev", Version: "v1", Plural: "kopfexamples", Kind: "KopfExample", Namespaced: true, Preferred: true}
	for i := range events {
		one := example(fmt.Sprint("object-", i))
		if i == events/2 {
			one.SetAnnotations(map[string]string{"watch": "yes"})
		}
		text, err := json.Marshal(one)
		if err != nil {
			t.Fatal(err)
		}
		snapshot, err := object.ParseSnapshot(text)
		if err != nil {
			t.Fatal(err)
		}
		recorder.Event(of, handlers, object.WatchEvent{Type: apiwatch.Modified, Snapshot: snapshot})
	}
	if err := recorder.Close(); err != nil {
		t.Fatal(err)
	}
	kopftest.Replay(t, file, registryOf(recorded))
	passed, output := runAlone(t, func(t *testing.T) {
		kopftest.Replay(t, file, registryOf(func(r *kopf.Registry) {
			r.OnEvent(examples, func(context.Context, *kopf.WatchEvent) error { return nil }, kopf.ID("event"), kopf.Labels(map[string]kopf.Matcher{"watch": kopf.Present()}))
		}))
	})
	if passed || !strings.Contains(output, "1 decisions are different") || !strings.Contains(output, "10000 decisions") {
		t.Errorf("got %s", output)
	}
}
