package side8_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/kopf-go/kopf/pkg/serve/side8"
)

func TestVariables(t *testing.T) {
	object := `{"metadata":{"name":"es"},"spec":{"master":{"replicas":1},"ratio":2.5,"big":9007199254740993,"on":true,"off":false,"none":null,"hosts":["a",{"port":2}],"empty":{},"a=b":1,"nul":"\u0000"}}`
	got, err := side8.Variables([]byte(object))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"K8S=" + object, "K8S_METADATA_NAME=es", "K8S_SPEC_BIG=9007199254740993", "K8S_SPEC_HOSTS_0=a", "K8S_SPEC_HOSTS_1_PORT=2",
		"K8S_SPEC_MASTER_REPLICAS=1", "K8S_SPEC_NONE=", "K8S_SPEC_OFF=0", "K8S_SPEC_ON=1", "K8S_SPEC_RATIO=2.5", "_DOLLAR=$",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}

func TestStatus(t *testing.T) {
	for output, want := range map[string]struct {
		fields int
		err    string
	}{
		"":                       {0, ""},
		"null\n":                 {0, ""},
		"# nothing\n":            {0, ""},
		"phase: ready\nnodes: 3": {2, ""},
		`{"phase": "ready"}`:     {1, ""},
		"done":                   {0, "the output is no mapping"},
		"[1]":                    {0, "the output is no mapping"},
		"a: b: c":                {0, "the output is no YAML"},
	} {
		status, err := side8.Status([]byte(output))
		if len(status) != want.fields || (err == nil) != (want.err == "") || err != nil && !strings.Contains(err.Error(), want.err) {
			t.Errorf("%q: got %v, %v", output, status, err)
		}
	}
	if status, _ := side8.Status([]byte("number: 9007199254740993")); status["number"] != int64(9007199254740993) {
		t.Errorf("got %v", status)
	}
}

func TestChanges(t *testing.T) {
	object := []byte(`{"status":{"phase":"ready","nodes":{"a":1},"list":[1,2]}}`)
	for text, want := range map[string]bool{
		"phase: ready": false, "phase: broken": true, "nodes: {a: 1}": false, "nodes: {b: 1}": true, "nodes: null": true,
		"other: null": false, "list: [1, 2]": false, "list: [1]": true, "nodes: 1": true, "other: {}": true,
	} {
		status, err := side8.Status([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := side8.Changes(object, status); err != nil || got != want {
			t.Errorf("%s: got %t, %v", text, got, err)
		}
	}
	if got, err := side8.Changes([]byte(`{}`), map[string]any{"a": int64(1)}); err != nil || !got {
		t.Errorf("a first status: got %t, %v", got, err)
	}
}
