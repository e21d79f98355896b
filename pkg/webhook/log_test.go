package webhook_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/pkg/webhook"
)

func TestLogOfRejections(t *testing.T) {
	tests := map[string]struct {
		err     error
		request m
		want    []string
		not     string
	}{
		"a rejection": {
			handler.Reject("no", 422),
			m{"dryRun": true},
			[]string{"The request was rejected.", `"operation"="CREATE"`, `"reason"="no" "code"=422 "user"="alice" "dryRun"=true`, `"object"={"kind"="KopfExample" "namespace"="ns" "name"="one" "apiVersion"="kopf.dev/v1"}`},
			"note",
		},
		"a rejection with an invalid code": {
			handler.Reject("odd", 200),
			m{},
			[]string{`"code"=500 "user"="alice" "dryRun"=false "note"="the handler gave the code 200, which is not one of 400 to 599"`},
			`"uid"`,
		},
		"a rejection with the default code": {handler.Reject("no", 0), m{}, []string{`"code"=500`}, "note"},
		"a failure":                         {errors.New("oops"), m{}, []string{"The handler failed, and the request was rejected.", `"code"=500 "user"="alice"`}, "note"},
		"a stored object":                   {handler.Reject("no", 422), m{"operation": "DELETE", "oldObject": example(nil), "object": nil}, []string{`"uid"="u-1"`}, "note"},
		"an object that has no name yet": {
			handler.Reject("no", 422),
			m{"name": "", "object": m{"kind": "KopfExample", "metadata": m{"generateName": "a-"}}},
			[]string{`"object"={"kind"="KopfExample" "namespace"="ns" "apiVersion"="kopf.dev/v1"}`},
			"note",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			h, lines := &handlers{t: t}, []string{}
			h.validate("check", failing(test.err))
			log := funcr.New(func(_, line string) { lines = append(lines, line) }, funcr.Options{})
			ask(t, h.serve(func(o *webhook.Options) { o.Logger = log }), "/check", review(example(nil), test.request))
			if len(lines) != 1 || strings.Contains(lines[0], test.not) {
				t.Fatalf("got %v", lines)
			}
			for _, want := range test.want {
				if !strings.Contains(lines[0], want) {
					t.Errorf("got %s, want %s in it", lines[0], want)
				}
			}
		})
	}
}

// An eviction is not the creation of a pod.
func TestLogNamesTheSubresource(t *testing.T) {
	h, lines := &handlers{t: t}, []string{}
	h.validate("check", failing(handler.Reject("no", 422)), handler.Subresource("status"))
	log := funcr.New(func(_, line string) { lines = append(lines, line) }, funcr.Options{})
	ask(t, h.serve(func(o *webhook.Options) { o.Logger = log }), "/check", review(example(nil), m{"subResource": "status"}))
	if got := strings.Join(lines, "\n"); !strings.Contains(got, `"operation"="CREATE" "subresource"="status"`) {
		t.Errorf("got %s", got)
	}
}
