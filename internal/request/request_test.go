package request_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/kopf-go/kopf/internal/request"
)

func TestRequestsAreParsed(t *testing.T) {
	tests := map[string]struct {
		verb  request.Verb
		value string
		want  []string // handlers; nil: an error
		force bool
	}{
		"one handler":               {request.Retry, "1 create", []string{"create"}, false},
		"several handlers":          {request.Rerun, "2026-01-01 create update/spec.size", []string{"create", "update/spec.size"}, false},
		"much space":                {request.Skip, "  1\tcreate\n", []string{"create"}, false},
		"abandon":                   {request.Skip, "1 remove abandon", []string{"remove"}, true},
		"a handler of that name":    {request.Retry, "1 abandon", []string{"abandon"}, false},
		"nothing":                   {request.Retry, "", nil, false},
		"only a token":              {request.Retry, "1", nil, false},
		"only a token and abandon":  {request.Skip, "1 abandon", nil, false},
		"more than a person writes": {request.Retry, "1 " + string(make([]byte, 1023)), nil, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r, err := request.Parse(test.verb, test.value)
			switch {
			case test.want == nil && err == nil, test.want != nil && err != nil:
				t.Errorf("got %+v, %v", r, err)
			case test.want != nil && (!reflect.DeepEqual(r.Handlers, test.want) || r.Abandon != test.force || r.Value != test.value || r.Verb != test.verb):
				t.Errorf("got %+v", r)
			}
		})
	}
}

func TestSuspensionsAreParsed(t *testing.T) {
	noon := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	for value, want := range map[string]time.Time{"2026-01-31T12:00:00Z": noon, "2026-01-31T13:00:00+01:00": noon, "forever": {}} {
		if until, err := request.ParseSuspension(value); err != nil || !until.Equal(want) {
			t.Errorf("%s: got %v, %v", value, until, err)
		}
	}
	for _, value := range []string{"", "yes", "24h", "2026-01-31"} {
		if until, err := request.ParseSuspension(value); err == nil {
			t.Errorf("%q: got %v", value, until)
		}
	}
}

func TestHandledValuesSurvive(t *testing.T) {
	handled := map[request.Verb]string{request.Retry: "1 create", request.Skip: `2 "x"`}
	if got := request.ParseHandled(request.FormatHandled(handled)); !reflect.DeepEqual(got, handled) {
		t.Errorf("got %v", got)
	}
	for _, text := range []string{"", "x", "[]", `{"retry":1}`} {
		if got := request.ParseHandled(text); got != nil {
			t.Errorf("%q: got %v", text, got)
		}
	}
}
