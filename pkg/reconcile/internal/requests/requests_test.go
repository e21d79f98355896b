package requests_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/internal/handlertest"
	"github.com/kopf-go/kopf/internal/registry"
	"github.com/kopf-go/kopf/pkg/model/cause"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/selector"
	"github.com/kopf-go/kopf/pkg/reconcile/call"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/requests"
	"github.com/kopf-go/kopf/pkg/storage"
)

const prefix = "kopf.zalando.org"

func annotated(annotations map[string]any) *object.Body {
	return object.NewBody(map[string]any{"metadata": map[string]any{"annotations": annotations}})
}

func handlersOf(t *testing.T, ids ...string) (all registry.Handlers) {
	t.Helper()
	for _, id := range ids {
		d, err := handler.Create(selector.New("kex"), handlertest.Function(func(context.Context, *handler.Call) error { return nil }), handler.ID(id))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, d)
	}
	return all
}

func TestRequestsChangeTheProgress(t *testing.T) {
	later := time.Now().Add(time.Hour)
	waiting := storage.Record{Started: time.Now(), Purpose: cause.Create, Retries: 3, Delayed: later, Message: "not yet"}
	succeeded := storage.Record{Started: time.Now(), Purpose: cause.Create, Retries: 1, Success: true}
	failed := storage.Record{Started: time.Now(), Purpose: cause.Create, Retries: 1, Failure: true}
	begun := storage.Record{Started: time.Now(), Purpose: cause.Create, Retries: 1, Message: "not yet"}
	deleting := func(r storage.Record) storage.Record { r.Purpose = cause.Delete; return r }
	tests := map[string]struct {
		verb, value string
		record      *storage.Record
		reason      cause.Reason
		note        string
		due, ended  bool
	}{
		"a waiting handler is retried":                {"retry", "1 fn", &waiting, cause.Create, "The handler fn is called now", true, false},
		"a new handler is not retried":                {"retry", "1 fn", nil, cause.Create, "it does not wait for its next attempt", true, false},
		"a succeeded handler is not retried":          {"retry", "1 fn", &succeeded, cause.Create, "it has ended already; to call it again, use request-rerun", true, true},
		"a failed handler is not retried":             {"retry", "1 fn", &failed, cause.Create, "it has failed for good; to call it again, use request-rerun", true, true},
		"a failure before the deletion is no failure": {"retry", "1 fn", &failed, cause.Delete, "it does not wait for its next attempt", true, true},
		"a new handler runs":                          {"rerun", "1 fn", nil, cause.Create, "The handler fn is called again", true, false},
		"a succeeded handler runs again":              {"rerun", "1 fn", &succeeded, cause.Create, "The handler fn is called again", true, false},
		"a failed handler runs again":                 {"rerun", "1 fn", &failed, cause.Create, "The handler fn is called again", true, false},
		"a waiting handler does not run again":        {"rerun", "1 fn", &waiting, cause.Create, "it has not ended, and waits for its next attempt; to call it now, use request-retry.", false, false},
		"a handler that is called does not run again": {"rerun", "1 fn", &begun, cause.Create, "it has not ended yet, and is called anyway.", true, false},
		"a waiting handler is skipped":                {"skip", "1 fn", &waiting, cause.Create, "The handler fn is skipped", true, true},
		"a new handler is skipped":                    {"skip", "1 fn", nil, cause.Create, "The handler fn is skipped", true, true},
		"a succeeded handler is not skipped":          {"skip", "1 fn", &succeeded, cause.Create, "it has succeeded already", true, true},
		"a deletion handler needs another word":       {"skip", "1 fn", new(deleting(waiting)), cause.Delete, "add the word abandon", false, false},
		"a deletion handler is abandoned":             {"skip", "1 fn abandon", new(deleting(failed)), cause.Delete, "The handler fn is skipped", true, true},
		"a handler of another cause is left alone":    {"skip", "1 other", &waiting, cause.Create, "no handler of this resource has the id other", false, false},
		"a record of the operator is left alone":      {"rerun", "1 last-handled-configuration", &waiting, cause.Create, "no handler of this resource has the id last-handled-configuration", false, false},
		"an unreadable request changes nothing":       {"retry", "fn", &waiting, cause.Create, "names no handler", false, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			progress := call.NewProgress(func(id string) *storage.Record {
				if id != "fn" {
					t.Errorf("the record of %s was loaded", id)
				}
				return test.record
			})
			progress.Load("fn")
			reader := requests.NewReader(prefix)
			annotations := map[string]any{prefix + "/request-" + test.verb: test.value}
			read := reader.Read(annotated(annotations))
			read.Reruns(progress)
			read.Apply(progress, requests.Handlers{Selected: handlersOf(t, "fn")}, test.reason)
			state := progress.Load("fn")
			if due := state.RemainingDelay(time.Now()) == 0; due != test.due || state.Finished() != test.ended {
				t.Errorf("due: %t, got %+v", due, state.Record)
			}
			honored := strings.HasPrefix(test.note, "The handler fn ")
			if len(read.Notes) != 1 || !strings.Contains(read.Notes[0].Message, test.note) || read.Notes[0].Refused == honored {
				t.Errorf("got %+v", read.Notes)
			}
			if got := read.HasSkipped(); got != (honored && test.verb == "skip") {
				t.Errorf("skipped: %t", got)
			}
			key, value := read.Record()
			if key != prefix+"/requests-handled" || !strings.Contains(value, test.value) {
				t.Errorf("got %s: %s", key, value)
			}

			// The same value is honored once, and its removal is no request.
			annotations[key] = value
			for range 2 {
				again := reader.Read(annotated(annotations))
				again.Apply(progress, requests.Handlers{Selected: handlersOf(t, "fn")}, test.reason)
				if key, _ := again.Record(); key != "" || len(again.Notes) > 0 || again.HasSkipped() {
					t.Errorf("it was honored again: %+v", again.Notes)
				}
				delete(annotations, prefix+"/request-"+test.verb)
			}
		})
	}
}

func TestSeveralRequestsAreAnsweredAtOnce(t *testing.T) {
	progress := call.NewProgress(func(string) *storage.Record { return nil })
	read := requests.NewReader(prefix).Read(annotated(map[string]any{
		prefix + "/requests-handled": `{"rerun":"1 c"}`,
		prefix + "/request-rerun":    "1 c",
		prefix + "/request-retry":    "1 b",
		prefix + "/request-skip":     "1 a b",
	}))
	if ids := read.Reruns(progress); ids != nil {
		t.Errorf("%q are rerun", ids)
	}
	read.Apply(progress, requests.Handlers{Selected: handlersOf(t, "a", "b")}, cause.Create)
	var answers []string
	for _, note := range read.Notes {
		answers = append(answers, note.Handler+": "+note.Message)
	}
	want := []string{
		"b: The request to retry the handler b is refused: it does not wait for its next attempt.",
		"a: The handler a is skipped as requested.", "b: The handler b is skipped as requested.",
	}
	if !slices.Equal(answers, want) {
		t.Errorf("got %q", answers)
	}
	if _, value := read.Record(); value != `{"rerun":"1 c","retry":"1 b","skip":"1 a b"}` {
		t.Errorf("got %s", value)
	}
}

func TestARefusalAdvisesAnotherRequest(t *testing.T) {
	record := &storage.Record{Started: time.Now(), Purpose: cause.Create, Retries: 1, Success: true}
	progress := call.NewProgress(func(string) *storage.Record { return record })
	read := requests.NewReader(prefix).Read(annotated(map[string]any{prefix + "/request-retry": "1 fn"}))
	read.Apply(progress, requests.Handlers{Selected: handlersOf(t, "fn")}, cause.Create)
	if got := read.Notes[0]; got.Problem != "it has ended already." || got.Instead != "rerun" || got.Advice() != "to call it again" {
		t.Errorf("got %+v", got)
	}
}

// A rerun goes on until its handler has ended, also after a request to rerun another one.
func TestRerunsContinueUntilTheyHaveEnded(t *testing.T) {
	running := &storage.Record{Started: time.Now(), Purpose: cause.Resume, Retries: 1}
	for name, test := range map[string]struct {
		handled, request string
		record           *storage.Record
		reruns           []string
		recorded         string
	}{
		"the same request":       {`{"rerun":"1 fn unknown"}`, "1 fn unknown", running, []string{"fn"}, ""},
		"of an earlier request":  {`{"rerun":"2 other","rerun-earlier":"- fn"}`, "2 other", running, []string{"fn"}, ""},
		"another request":        {`{"rerun":"1 fn unknown"}`, "2 other", running, []string{"other", "fn"}, `{"rerun":"2 other","rerun-earlier":"- fn"}`},
		"once more":              {`{"rerun":"1 fn","rerun-earlier":"- fn"}`, "2 fn", running, []string{"fn"}, `{"rerun":"2 fn"}`},
		"it has ended":           {`{"rerun":"2 x","rerun-earlier":"- fn"}`, "3 other", &storage.Record{Started: time.Now(), Purpose: cause.Resume, Success: true}, []string{"other"}, `{"rerun":"3 other"}`},
		"it is called otherwise": {`{"rerun":"1 fn"}`, "2 other", &storage.Record{Started: time.Now(), Purpose: cause.Update}, []string{"other"}, `{"rerun":"2 other"}`},
		"it has no record":       {`{"rerun":"1 fn"}`, "2 other", nil, []string{"other"}, `{"rerun":"2 other"}`},
	} {
		t.Run(name, func(t *testing.T) {
			progress := call.NewProgress(func(string) *storage.Record { return test.record })
			progress.Load("fn")
			read := requests.NewReader(prefix).Read(annotated(map[string]any{prefix + "/requests-handled": test.handled, prefix + "/request-rerun": test.request}))
			if got := read.Reruns(progress); !slices.Equal(got, test.reruns) {
				t.Errorf("got %q", got)
			}
			read.Apply(progress, requests.Handlers{}, cause.Resume)
			if _, got := read.Record(); got != test.recorded {
				t.Errorf("recorded %s", got)
			}
		})
	}
}

func TestObjectsWithoutRequestsAreLeftAlone(t *testing.T) {
	copied := object.NewBody(map[string]any{
		"kind": "ReplicaSet", "metadata": map[string]any{
			"annotations":     map[string]any{prefix + "/request-retry": "1 fn", prefix + "/request-suspend": "forever"},
			"ownerReferences": []any{map[string]any{"kind": "Deployment", "controller": true}},
		},
	})
	var disabled *requests.Reader
	for name, test := range map[string]struct {
		reader *requests.Reader
		body   *object.Body
	}{
		"no annotation":             {requests.NewReader(prefix), annotated(nil)},
		"other annotations":         {requests.NewReader(prefix), annotated(map[string]any{"example.com/request-retry": "1 fn"})},
		"annotations of its parent": {requests.NewReader(prefix), copied},
		"requests are disabled":     {disabled, annotated(map[string]any{prefix + "/request-retry": "1 fn", prefix + "/request-suspend": "forever"})},
	} {
		read := test.reader.Read(test.body)
		if key, _ := read.Record(); read != nil || key != "" || read.HasSkipped() {
			t.Errorf("%s: got %+v", name, read)
		}
		if suspension := test.reader.Suspension(test.body, time.Now()); suspension != (requests.Suspension{}) {
			t.Errorf("%s: got %+v", name, suspension)
		}
		read.Apply(nil, requests.Handlers{}, cause.Create)
		if ids := read.Reruns(nil); ids != nil {
			t.Errorf("%s: got %q", name, ids)
		}
	}
}

func TestSuspensionsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		noon := time.Now().Add(time.Hour)
		for value, want := range map[string][2]bool{
			"forever": {true, true}, noon.Format(time.RFC3339): {true, false}, "yes": {false, false},
		} {
			body, reader := annotated(map[string]any{prefix + "/request-suspend": value}), requests.NewReader(prefix)
			before, after := reader.Suspension(body, noon.Add(-time.Second)), reader.Suspension(body, noon)
			if before.Active != want[0] || after.Active != want[1] || (before.Err != nil) != (value == "yes") {
				t.Errorf("%s: got %+v, %+v", value, before, after)
			}
		}
	})
}
