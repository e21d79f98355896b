package main

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestStory(t *testing.T) {
	const plain = "metadata: {name: one}"
	tests := map[string]struct {
		states []string // as YAML; empty: the object is deleted
		want   []string // for the last state
	}{
		"the object appears":    {[]string{plain}, []string{"exists"}},
		"nothing changes":       {[]string{plain, plain}, nil},
		"the object is deleted": {[]string{plain, ""}, []string{"is deleted"}},
		"it is created again":   {[]string{plain, "", plain}, []string{"exists"}},
		"a finalizer is added": {
			[]string{plain, "metadata: {finalizers: [f]}"},
			[]string{"has the finalizer f: the object stays until its deletion is handled"},
		},
		"a finalizer is removed": {
			[]string{"metadata: {finalizers: [f, g]}", "metadata: {finalizers: [g]}"},
			[]string{"no longer has the finalizer f"},
		},
		"it is deleted": {
			[]string{"metadata: {generation: 1}", `metadata: {generation: 2, deletionTimestamp: "2026-01-01T00:00:00Z"}`},
			[]string{"is marked for deletion and waits for its finalizers"},
		},
		"its spec changes": {
			[]string{"metadata: {generation: 1}", "metadata: {generation: 2}"},
			[]string{"changed: generation 2"},
		},
		"a handler fails temporarily": {
			[]string{plain, `metadata: {annotations: {kopf.zalando.org/fn: '{"purpose":"update","retries":2,"message":"oops","delayed":"soon"}'}}`},
			[]string{"record fn (update): attempt 2 failed: oops; the next attempt is due at soon"},
		},
		"a handler fails permanently": {
			[]string{plain, `metadata: {annotations: {kopf.zalando.org/fn: '{"purpose":"create","retries":1,"failure":true,"message":"oops"}'}}`},
			[]string{"record fn (create): failed permanently: oops"},
		},
		"a cycle stays open": {
			[]string{plain, `metadata: {annotations: {kopf.zalando.org/last-handled-configuration-started: "{}"}}`}, nil,
		},
		"a handler begins": {
			[]string{plain, `metadata: {annotations: {kopf.zalando.org/fn: '{"purpose":"create"}'}}`},
			[]string{"record fn (create): is running"},
		},
		"an annotation that is not a record": {
			[]string{plain, `metadata: {annotations: {kopf.zalando.org/kopf-managed: "yes"}}`},
			[]string{"annotation kopf.zalando.org/kopf-managed = yes"},
		},
		"the cycle ends": {
			[]string{
				`metadata: {annotations: {kopf.zalando.org/fn: '{"purpose":"create"}'}}`,
				"metadata: {annotations: {kopf.zalando.org/last-handled-configuration: '{}'}}",
			},
			[]string{
				"IS HANDLED: the operator stored this state in the annotation kopf.zalando.org/last-handled-configuration",
				"record fn: the cycle is finished, and its record is removed",
			},
		},
		"results change and are removed": {
			[]string{"status: {a: 1, b: {c: d}}", "status: {b: {c: e}}"},
			[]string{`status.b = {"c":"e"}`, "status.a is removed"},
		},
		"a long value is cut": {
			[]string{plain, "status: {a: " + strings.Repeat("x", 1000) + "}"},
			[]string{`status.a = "` + strings.Repeat("x", maxValue-1) + "…"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var told []string
			var story story
			for _, state := range test.states {
				told = story.next(object(t, state))
			}
			if !slices.Equal(told, test.want) {
				t.Errorf("got:\n%s\nwant:\n%s", strings.Join(told, "\n"), strings.Join(test.want, "\n"))
			}
		})
	}
}

func object(t *testing.T, state string) *unstructured.Unstructured {
	t.Helper()
	if state == "" {
		return nil
	}
	object, err := decode([]byte("kind: Any\n" + state))
	if err != nil {
		t.Fatal(err)
	}
	return object
}

func TestEventSentence(t *testing.T) {
	event := object(t, "type: Warning\nreason: Logging\nmessage: Handler fn failed.")
	if got, want := eventSentence(event), "Warning Logging: Handler fn failed."; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
