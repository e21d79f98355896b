package write

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kopf-go/kopf/pkg/storage"
)

// contend lets another client undo a write until that counts as contention.
func contend(t *testing.T, metadata m, path ...string) *fixture {
	return contendAs(t, "mine", metadata, path...)
}

// contendAs lets an operator of the name contend.
func contendAs(t *testing.T, name string, metadata m, path ...string) *fixture {
	f := newFixture(t, metadata)
	f.managers = []metav1.ManagedFieldsEntry{{Manager: "x", Operation: "Update", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:a":{}}}`)}}
	f.contend(name, path...)
	return f
}

func (f *fixture) contend(name string, path ...string) {
	f.writer = New(Config{Name: name, Records: f.writer.Records, ContentionDelays: []time.Duration{time.Minute}})
	for range threshold + 1 {
		f.refresh(f.cached())
		f.edit("a", set("ours", path...))
		f.write(Update{})
		into := storage.Patch{}
		into.Set(path, "theirs")
		f.change(into)
	}
}

func TestContentionIsReportedOnceAndDelaysTheObject(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := contend(t, m{}, "spec", "a")
		if len(f.events) != 1 || !strings.Contains(f.events[0], `undone repeatedly by the field manager "x" (Update): spec.a.`) ||
			!strings.Contains(f.events[0], "Let only one of them") {
			t.Errorf("got %q", f.events)
		}
		f.expect("requests", strings.Count(strings.Join(f.sent(), ", "), "managedFields"), 1)
		f.expect("delay", f.writer.ContentionDelay(f.target.Key, f.cached()), time.Minute)
		f.change(m{"metadata": deleting(theirs)})
		f.expect("delay of a deletion", f.writer.ContentionDelay(f.target.Key, f.cached()), time.Duration(0))
	})
}

// Two operators without names have the same field manager.
func TestContentionNamesBothManagers(t *testing.T) {
	for name, want := range map[string]bool{"mine": false, "x": true} {
		synctest.Test(t, func(t *testing.T) {
			text := strings.Join(contendAs(t, name, m{}, "spec", "a").events, "; ")
			if !strings.Contains(text, fmt.Sprintf("The writes of this operator (%q) are undone repeatedly by the field manager \"x\"", name)) ||
				strings.Contains(text, "settings.Name") != want {
				t.Errorf("got %q", text)
			}
		})
	}
}

func TestContentionWithAnUnknownWriterIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, m{})
		f.contend("mine", "spec", "a")
		text := strings.Join(f.events, "; ")
		f.expect("named", strings.Contains(text, "a client that the object does not name"), true)
		f.expect("names", strings.Contains(text, "settings.Name"), false)
	})
}

func TestContentionForRecordsHasAnotherRemedy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := contend(t, m{}, "metadata", "annotations", "kopf.zalando.org/last-handled-configuration")
		if len(f.events) != 1 || !strings.Contains(f.events[0], "own records") {
			t.Errorf("got %q", f.events)
		}
	})
}

// A field that the server drops is not undone by another client.
func TestAPrunedFieldIsNoContention(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, m{})
		f.prunesStatus = true
		f.writer = New(Config{Records: f.writer.Records, ContentionDelays: []time.Duration{time.Minute}})
		for range threshold + 1 {
			f.refresh(f.cached())
			f.edit("a", set("ours", "status", "a"))
			f.write(Update{})
		}
		f.expect("delay", f.writer.ContentionDelay(f.target.Key, f.cached()), time.Duration(0))
	})
}

func TestOwnRecords(t *testing.T) {
	f := newFixture(t, m{})
	for text, want := range map[string]bool{
		"metadata": false, "metadata finalizers": true, "metadata labels": false, "metadata labels kopf.zalando.org/last-handled-configuration": false,
		"metadata annotations kopf.zalando.org/last-handled-configuration": true, "metadata annotations example.com/a": false,
		"metadata annotations": false, "spec finalizers": false, "spec": false,
	} {
		if got := f.writer.isOwnRecord(strings.Fields(text)); got != want {
			t.Errorf("%s: got %v", text, got)
		}
	}
}

func TestAuthorOfContention(t *testing.T) {
	at := metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	for want, by := range map[string]*metav1.ManagedFieldsEntry{
		"a client that the object does not name":                 nil,
		`the field manager "x" (Apply)`:                          {Manager: "x", Operation: metav1.ManagedFieldsOperationApply},
		`the field manager "x" (Update at 2026-01-02T03:04:05Z)`: {Manager: "x", Operation: metav1.ManagedFieldsOperationUpdate, Time: &at},
	} {
		if got := (finding{by: by}).author(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestPrunableFields(t *testing.T) {
	tests := map[string]struct {
		merge m
		want  bool
	}{
		"records and finalizers": {m{"metadata": m{"annotations": m{}, "finalizers": []any{}, "labels": m{}}}, false},
		"other metadata":         {m{"metadata": m{"labels": m{}, "x": "y"}}, true},
		"no metadata":            {m{"metadata": nil}, true},
		"the spec":               {m{"spec": m{"labels": m{}}}, true},
		"nothing":                {m{}, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := isPrunable(test.merge); got != test.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestPrunedFieldsAreReportedOnce(t *testing.T) {
	f := newFixture(t, m{})
	f.prunesStatus = true
	for _, value := range []string{"a", "b"} {
		f.edit("a", set(value, "status", "phase"))
		f.write(Update{})
	}
	f.expect("events", len(slices.Compact(f.events)), len(f.events))
	f.expect("number", len(f.events), 1)
}
