package webhook_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"strings"
	"testing"

	"github.com/kopf-go/kopf/internal/handler"
)

// FuzzReviews checks that every request is answered, by a review or by an explanation.
func FuzzReviews(f *testing.F) {
	valid := encode(f, review(example(m{"size": 1})))
	for _, seed := range []string{
		valid, valid[:len(valid)/2], "", "null", "{}", "[]", `"\ud800"`, "{\"request\":null}",
		encode(f, review(example(nil), m{"operation": "UPDATE", "oldObject": example(m{"size": 2})})),
		encode(f, review(nil, m{"operation": "DELETE", "oldObject": example(nil)})),
		encode(f, review(nil, m{"operation": "CONNECT", "object": m{"kind": "PodExecOptions"}})),
		encode(f, review(m{"metadata": 1, "spec": nil, "kind": []any{}})),
		encode(f, review(m{"metadata": m{"labels": []any{}, "name": 1, "uid": m{}, "managedFields": "x"}})),
		encode(f, review(example(nil), m{"userInfo": m{"extra": m{"a": []any{"b"}}}, "options": 1, "dryRun": nil})),
	} {
		f.Add(seed, "/", "")
		f.Add(seed, "/look", "timeout=10s")
	}
	h := &handlers{t: f}
	h.mutate("look", func(_ context.Context, a *handler.Call) error {
		_, _, _ = a.Transition().Diff.String(), a.Body().Labels(), a.Body().Annotations()
		a.Review.Warn(a.Name() + a.Namespace() + string(a.Body().UID()))
		a.Context.Patch.SetLabel("seen", "yes")
		return nil
	}, handler.Subresource("*"), handler.Field("spec"))
	w := h.serve()
	f.Fuzz(func(t *testing.T, body, path, query string) {
		request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader(body))
		request.URL = &url.URL{Path: path, RawQuery: query}
		recorder := httptest.NewRecorder()
		w.ServeHTTP(recorder, request)
		text := recorder.Body.Bytes()
		switch recorder.Code {
		case http.StatusBadRequest, http.StatusNotFound:
			if len(text) == 0 {
				t.Error("there is no explanation")
			}
		case http.StatusOK:
			if !json.Valid(text) {
				t.Errorf("got %s", text)
			}
		default:
			t.Errorf("status %d: %s", recorder.Code, text)
		}
	})
}

// FuzzPatches checks for every merge patch that the operations of the response lead to
// the object that the next handler sees.
func FuzzPatches(f *testing.F) {
	for body, merge := range map[string]string{
		`{"a/b": {"~c": 1, "": 2}}`:               `{"a/b": {"~c": null, "": 3, "~1": {}}}`,
		`{"l": [1, {"a": [2]}, null]}`:            `{"l": [{"a": [2]}, 1, null, 1]}`,
		`{"n": 9007199254740993, "f": 1.5}`:       `{"n": 9007199254740992, "f": 2.5e3}`,
		`{"x": null, "y": {"z": null}}`:           `{"x": null, "y": {"z": null, "w": null}}`,
		`{"size": "\u65e5", "i": [[]], "o": {}}`:  `{"size": {"\ud83d\ude00": "\u0000"}, "i": [[[]]], "o": []}`,
		`{"s": "<&>", "list": ["a", "b", "c"]}`:   `{"s": "\\", "list": ["c", "b", "a", "a"]}`,
		`{"s": {"a": {"b": {"c": {"d": true}}}}}`: `{"s": {"a": {"b": {"c": null}, "e": {"f": {}}}}}`,
	} {
		f.Add(body, merge)
	}
	f.Fuzz(func(t *testing.T, body, merge string) {
		object, change := example(nil), m{}
		var spec any
		if json.Unmarshal([]byte(body), &spec) != nil || json.Unmarshal([]byte(merge), &change) != nil || spec == nil {
			t.Skip("only JSON is of interest")
		}
		object["spec"] = spec
		var seen any
		h := &handlers{t: t}
		h.mutate("change", func(_ context.Context, a *handler.Call) error { a.Context.Patch.Merge(m{"spec": change}); return nil })
		h.mutate("look", func(_ context.Context, a *handler.Call) error { seen = a.Body().View().Map()["spec"]; return nil })
		got := ask(t, h.serve(), "/", review(object))
		if !got.Allowed {
			t.Skip("the patch is refused")
		}
		want := decoded(t, m{"spec": seen})
		if after := patched(t, object, got)["spec"]; !reflect.DeepEqual(after, want["spec"]) {
			t.Errorf("%s leads to %v, want %v", got.Patch, after, want["spec"])
		}
	})
}
