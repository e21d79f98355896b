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
		"an item with another key":     {`{"spec":{"template":{"spec":{"containers":[{"name":"web","ports":[{"containerPort":80,"protocol":"UDP"}]}]}}}}`, []string{"spec.template.spec.containers[name=web].ports[containerPort=80,protocol=UDP]"}},
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

// The server prints the keys of lists in its own way.
func TestItemsAreFoundByTheValuesOfTheirKeys(t *testing.T) {
	for name, test := range map[string]struct {
		owned  string
		wanted []any
		want   []string
	}{
		"a million":                {`"k:{\"asn\":1000000}":{}`, []any{map[string]any{"asn": int64(1000000)}}, nil},
		"a million as a float":     {`"k:{\"asn\":1000000}":{}`, []any{map[string]any{"asn": 1e6}}, nil},
		"beyond floats":            {`"k:{\"id\":9007199254740993}":{}`, []any{map[string]any{"id": int64(9007199254740993)}}, nil},
		"a neighbor beyond floats": {`"k:{\"id\":9007199254740993}":{}`, []any{map[string]any{"id": int64(9007199254740992)}}, []string{"list[id=9007199254740992]"}},
		"a boolean":                {`"k:{\"on\":true}":{}`, []any{map[string]any{"on": true}}, nil},
		"not the text of it":       {`"k:{\"on\":true}":{}`, []any{map[string]any{"on": "true"}}, []string{"list[on=true]"}},
		"an empty text":            {`"k:{\"name\":\"\"}":{}`, []any{map[string]any{"name": ""}}, nil},
		"a text beyond ASCII":      {`"k:{\"name\":\"ü<\"}":{}`, []any{map[string]any{"name": "ü<"}}, nil},
		"a small float in a set":   {`"v:1.5e-7":{}`, []any{1.5e-7}, nil},
		"a float in another form":  {`"v:1.5e-07":{}`, []any{1.5e-7}, nil},
		"a large integer in a set": {`"v:9007199254740993":{}`, []any{int64(9007199254740993), int64(9007199254740992)}, []string{"list[9007199254740992]"}},
		"markup in a set":          {`"v:\"a<b\"":{}`, []any{"a<b"}, nil},
		"one of two with a default": {
			`"k:{\"port\":53,\"protocol\":\"UDP\"}":{}`,
			[]any{map[string]any{"port": int64(53)}, map[string]any{"port": int64(53), "protocol": "UDP"}},
			[]string{"list[port=53]"},
		},
		"both of two with a default": {
			`"k:{\"port\":53,\"protocol\":\"TCP\"}":{},"k:{\"port\":53,\"protocol\":\"UDP\"}":{}`,
			[]any{map[string]any{"port": int64(53)}, map[string]any{"port": int64(53), "protocol": "UDP"}},
			nil,
		},
		"one of two with one key": {
			`"k:{\"port\":53}":{}`,
			[]any{map[string]any{"port": int64(53), "name": "tcp"}, map[string]any{"port": int64(53), "name": "udp"}},
			[]string{"list[port=53,name=udp]"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, p := range parseFields([]byte(`{"f:list":{` + test.owned + `}}`)).uncovered(map[string]any{"list": test.wanted}) {
				got = append(got, p.String())
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

// An empty list with keys is in no set, because its items are. One that is a single value is in the set of its owner.
func TestEmptyListsAreLostOnlyToAnOwnerOfTheList(t *testing.T) {
	for name, test := range map[string]struct {
		owned, others string
		wanted        string
		want          []string
	}{
		"nobody owns it":                   {`{"f:name":{}}`, `{}`, `{"name":"a","ports":[]}`, nil},
		"others own its items":             {`{"f:name":{}}`, `{"f:ports":{"k:{\"port\":1}":{".":{},"f:port":{}}}}`, `{"name":"a","ports":[]}`, nil},
		"the operator owns it":             {`{"f:name":{},"f:args":{}}`, `{}`, `{"name":"a","args":[]}`, nil},
		"others own it":                    {`{"f:name":{}}`, `{"f:args":{}}`, `{"name":"a","args":[]}`, []string{"args"}},
		"others own what is above it":      {`{"f:name":{}}`, `{"f:spec":{}}`, `{"name":"a","spec":{"args":[]}}`, []string{"spec.args"}},
		"nobody owns what is above it":     {`{"f:name":{}}`, `{"f:other":{}}`, `{"name":"a","spec":{"args":[]}}`, nil},
		"others own it, below what we own": {`{"f:spec":{"f:name":{}}}`, `{"f:spec":{"f:args":{}}}`, `{"spec":{"name":"a","args":[]}}`, []string{"spec.args"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, p := range (details{fields: []byte(test.owned), others: [][]byte{[]byte(test.others)}}).lost(decoded(t, test.wanted)) {
				got = append(got, p.String())
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
