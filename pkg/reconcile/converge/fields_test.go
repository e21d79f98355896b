package converge

import (
	"encoding/json"
	"slices"
	"testing"
)

func decoded(t *testing.T, text string) map[string]any {
	t.Helper()
	var value map[string]any
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		t.Fatal(err)
	}
	return value
}

func TestWantedFieldsThatAreNotOwned(t *testing.T) {
	const deployment = `{"f:metadata":{"f:labels":{".":{},"f:app":{}},"f:ownerReferences":{"k:{\"uid\":\"1\"}":{}}},` +
		`"f:spec":{"f:replicas":{},"f:selector":{},"f:template":{"f:spec":{"f:containers":{"k:{\"name\":\"web\"}":{".":{},"f:image":{},"f:name":{},` +
		`"f:args":{},"f:ports":{"k:{\"containerPort\":80,\"protocol\":\"TCP\"}":{".":{},"f:containerPort":{}}}}}}}},"f:set":{"v:\"a\"":{}}}`
	for name, test := range map[string]struct {
		wanted string
		want   []string
	}{
		"nothing is wanted":            {`{}`, nil},
		"identity belongs to no one":   {`{"apiVersion":"v1","kind":"X","metadata":{"name":"a","namespace":"b"}}`, nil},
		"an owned field":               {`{"spec":{"replicas":3}}`, nil},
		"below a field owned at once":  {`{"spec":{"selector":{"matchLabels":{"app":"x"}}}}`, nil},
		"a lost field":                 {`{"spec":{"paused":true,"replicas":3}}`, []string{"spec.paused"}},
		"a lost label":                 {`{"metadata":{"labels":{"app":"x","a.b/c":"y"}}}`, []string{"metadata.labels[a.b/c]"}},
		"an owned item by its key":     {`{"spec":{"template":{"spec":{"containers":[{"name":"web","image":"x","args":["a","b"]}]}}}}`, nil},
		"a lost field of an item":      {`{"spec":{"template":{"spec":{"containers":[{"name":"web","tty":true}]}}}}`, []string{"spec.template.spec.containers[name=web].tty"}},
		"a lost item":                  {`{"spec":{"template":{"spec":{"containers":[{"name":"log"}]}}}}`, []string{"spec.template.spec.containers[name=log]"}},
		"an item with a defaulted key": {`{"spec":{"template":{"spec":{"containers":[{"name":"web","ports":[{"containerPort":80}]}]}}}}`, nil},
		"an item with another key":     {`{"spec":{"template":{"spec":{"containers":[{"name":"web","ports":[{"containerPort":80,"protocol":"UDP"}]}]}}}}`, []string{"spec.template.spec.containers[name=web].ports[containerPort=80]"}},
		"items of a set":               {`{"set":["a","b"]}`, []string{"set[b]"}},
		"an owner reference":           {`{"metadata":{"ownerReferences":[{"uid":"1","name":"x"}]}}`, nil},
		"an empty mapping":             {`{"spec":{"replicas":{}}}`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			fields := parseFields([]byte(deployment))
			var got []string
			for _, p := range fields.uncovered(decoded(t, test.wanted)) {
				got = append(got, p.String())
				if _, found := fields.owned(p); found {
					t.Errorf("%s is owned after all", p)
				}
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

func TestBrokenFieldsOwnNothing(t *testing.T) {
	if got := parseFields([]byte("{")).uncovered(map[string]any{"a": "b"}); len(got) != 1 {
		t.Errorf("got %v", got)
	}
}
