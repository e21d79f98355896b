package release

import (
	"encoding/json"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kopf-go/kopf/pkg/model/selector"
)

func TestTracesOfAnOperator(t *testing.T) {
	const others = `"example.com/note":"x","kopf.zalando.org/keep":"true"`
	tests := map[string]struct {
		object     string
		want       string // the patch
		status     string
		held, left bool // left: the finalizer is not there
		foreign    []string
		orphans    []string
	}{
		"nothing":                          {object: `{"metadata":{"annotations":{` + others + `},"finalizers":["a"]}}`, want: `{}`, left: true},
		"the last handled state":           {object: `{"metadata":{"annotations":{` + base + `,` + others + `}}}`, want: `{"metadata":{"annotations":{` + removed("last-handled-configuration") + `}}}`, left: true},
		"the progress":                     {object: `{"metadata":{"annotations":{` + record + `}}}`, want: `{"metadata":{"annotations":{` + removed("fn") + `}}}`, left: true},
		"the finalizer":                    {object: `{"metadata":{"finalizers":["a","` + finalizer + `","b"]}}`, want: `{"metadata":{"finalizers":["a","b"]}}`},
		"the last finalizer":               {object: `{"metadata":{"finalizers":["` + finalizer + `"]}}`, want: `{"metadata":{"finalizers":[]}}`},
		"a deletion that waits":            {object: `{"metadata":{"deletionTimestamp":"2026-01-01T00:00:00Z","finalizers":["` + finalizer + `"]}}`, want: `{"metadata":{"finalizers":[]}}`, held: true},
		"a deletion that others hold":      {object: `{"metadata":{"deletionTimestamp":"2026-01-01T00:00:00Z","finalizers":["a"]}}`, want: `{}`, left: true},
		"the progress of another operator": {object: `{"metadata":{"annotations":{` + foreign + `}}}`, want: `{"metadata":{"annotations":{` + removed("other") + `}}}`, left: true, foreign: []string{"other"}},
		"requests and revisions":           {object: `{"metadata":{"annotations":{"kopf.zalando.org/request-skip":"1 fn","kopf.zalando.org/requests-handled":"{}","kopf.zalando.org/handled-revisions":"{}"}}}`, want: `{"metadata":{"annotations":{` + removed("handled-revisions") + `,` + removed("request-skip") + `,` + removed("requests-handled") + `}}}`, left: true},
		"children in its namespace":        {object: `{"metadata":{"annotations":{"kopf.zalando.org/kopf-children":"[\"ConfigMap\"]"}}}`, want: `{"metadata":{"annotations":{"kopf.zalando.org/kopf-children":null}}}`, left: true},
		"children in other namespaces":     {object: `{"metadata":{"annotations":{"kopf.zalando.org/kopf-children":"[\"Secret/b\",\"ConfigMap/a\"]"}}}`, want: `{"metadata":{"annotations":{"kopf.zalando.org/kopf-children":null}}}`, left: true, orphans: []string{"ConfigMap/a", "Secret/b"}},
		"progress in the status":           {object: `{"status":{"kopf":{"progress":{"fn":{"retries":1}}},"x":1}}`, want: `{}`, status: `{"kopf":null}`, left: true},
		"progress of sub-handlers there":   {object: `{"status":{"kopf":{"progress":{"fn":{"retries":1},"fn/sub":{"retries":1}}}}}`, want: `{}`, status: `{"kopf":null}`, left: true},
		"progress of others in the status": {object: `{"status":{"kopf":{"progress":{"fn":{"retries":1},"other":{"started":"2026-01-01T00:00:00","purpose":"create"}}}}}`, want: `{}`, status: `{"kopf":null}`, left: true, foreign: []string{"other"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r, _ := newReleaser(t)
			f := r.finder(r.resources[0])
			f.ensures = true
			obj := parse(t, things, "one", test.object)
			before := obj.DeepCopy()
			got, err := f.find(t.Context(), obj)
			if err != nil {
				t.Fatal(err)
			}
			if text(t, got.patch) != test.want || text(t, got.status) != orNull(test.status) {
				t.Errorf("got the patches %s and %s, want %s and %s", text(t, got.patch), text(t, got.status), test.want, orNull(test.status))
			}
			if got.isEmpty() != (test.want == `{}` && test.status == "") || got.held != test.held || got.finalizer == test.left {
				t.Errorf("got %+v", got)
			}
			if !slices.Equal(got.foreign, test.foreign) || !slices.Equal(got.orphans, test.orphans) {
				t.Errorf("got the records %q of others and the orphans %q", got.foreign, got.orphans)
			}
			if text(t, obj) != text(t, before) {
				t.Error("the object was changed")
			}
		})
	}
}

func removed(name string) string { return `"` + prefix + name + `":null` }

func orNull(text string) string {
	if text == "" {
		return "null"
	}
	return text
}

func text(t *testing.T, value any) string {
	t.Helper()
	data, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// Without handlers of Ensure, the annotation belongs to another operator.
func TestChildrenOfAnotherOperatorAreNoTraces(t *testing.T) {
	r, _ := newReleaser(t)
	got, err := r.finder(r.resources[0]).find(t.Context(), parse(t, things, "one", `{"metadata":{"annotations":{"kopf.zalando.org/kopf-children":"[\"ConfigMap/a\"]"}}}`))
	if err != nil || !got.isEmpty() || got.orphans != nil {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestMappingsThatAPatchEmptiesAreRemoved(t *testing.T) {
	for name, test := range map[string]struct{ present, patch, want string }{
		"a mapping":             {`{"status":{"a":{"b":1}}}`, `{"status":{"a":{"b":null}}}`, `{"status":{"a":null}}`},
		"two mappings":          {`{"status":{"a":{"b":{"c":1}}}}`, `{"status":{"a":{"b":{"c":null}}}}`, `{"status":{"a":null}}`},
		"an inner mapping":      {`{"status":{"a":{"b":{"c":1},"d":1}}}`, `{"status":{"a":{"b":{"c":null}}}}`, `{"status":{"a":{"b":null}}}`},
		"a mapping with others": {`{"status":{"a":{"b":1,"c":1}}}`, `{"status":{"a":{"b":null}}}`, `{"status":{"a":{"b":null}}}`},
		"a value":               {`{"status":{"a":1}}`, `{"status":{"a":2}}`, `{"status":{"a":2}}`},
		"a mapping at the top":  {`{"status":{"a":1}}`, `{"status":{"a":null}}`, `{"status":{"a":null}}`},
		"annotations stay":      {`{"metadata":{"annotations":{"a":"b"}}}`, `{"metadata":{"annotations":{"a":null}}}`, `{"metadata":{"annotations":{"a":null}}}`},
	} {
		t.Run(name, func(t *testing.T) {
			present, patch := parse(t, selector.Resource{Version: "v1", Kind: "X"}, "one", test.present), &unstructured.Unstructured{}
			if err := json.Unmarshal([]byte(test.patch), &patch.Object); err != nil {
				t.Fatal(err)
			}
			collapse(present.Object, patch.Object)
			if got := text(t, patch.Object); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}
