package write

import (
	"net/http"
	"reflect"
	"slices"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kopf-go/kopf/pkg/model/cause"
)

func TestMissingFields(t *testing.T) {
	tests := map[string]struct {
		merge, after m
		want         []string
	}{
		"everything is there": {m{"spec": m{"a": "b"}}, m{"spec": m{"a": "b", "c": "d"}}, nil},
		"a field is not":      {m{"status": m{"x": m{"a": int64(1)}}}, m{"status": m{"x": m{}}}, []string{"status.x.a"}},
		"several are not":     {m{"status": m{"b": "x", "a": "y"}}, m{"status": m{"c": "z"}}, []string{"status.a", "status.b"}},
		"many are not": {
			m{"status": m{"h": "x", "g": "x", "f": "x", "e": "x", "d": "x", "c": "x", "b": "x", "a": "x"}},
			m{},
			[]string{"status.a", "status.b", "status.c", "status.d", "status.e", "status.f", "status.g", "status.h"},
		},
		"a part that is a text is not":         {m{"text": "x"}, m{}, []string{"text"}},
		"a part of the object is not":          {m{"status": m{"a": m{"b": "x"}}}, m{}, []string{"status.a"}},
		"a list is not":                        {m{"spec": m{"l": []any{"a"}}}, m{"spec": m{}}, []string{"spec.l"}},
		"it has another value, but it has one": {m{"spec": m{"a": "b"}}, m{"spec": m{"a": "c"}}, nil},
		"it became something else":             {m{"spec": m{"a": m{"b": "c"}}}, m{"spec": m{"a": "text"}}, []string{"spec.a.b"}},
		"it should be removed":                 {m{"spec": m{"a": nil}}, m{"spec": m{}}, nil},
		"the last one should be removed":       {m{"metadata": m{"annotations": m{"a": nil}}}, m{"metadata": m{}}, nil},
		"everything should be removed, nested": {m{"status": m{"kopf": m{"progress": m{"a": nil}}}}, m{}, nil},
		"one removed, one added, none there":   {m{"metadata": m{"annotations": m{"a": nil, "b": "c"}}}, m{"metadata": m{}}, []string{"metadata.annotations"}},
		"an empty list":                        {m{"spec": m{"l": []any{}}}, m{"spec": m{}}, nil},
		"an empty mapping":                     {m{"spec": m{"a": m{}}}, m{"spec": m{}}, nil},
		"an empty text that is not there":      {m{"spec": m{"a": ""}}, m{"spec": m{}}, []string{"spec.a"}},
		"a false that is not there":            {m{"spec": m{"a": false}}, m{"spec": m{}}, []string{"spec.a"}},
		"nothing was wanted":                   {nil, m{}, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := missing(test.merge, test.after, nil); !slices.Equal(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestIsRejected(t *testing.T) {
	tests := map[string]struct {
		code int
		want bool
	}{
		"bad request": {http.StatusBadRequest, true},
		"forbidden, perhaps for the lack of a permission": {http.StatusForbidden, false},
		"too large":             {http.StatusRequestEntityTooLarge, true},
		"invalid":               {http.StatusUnprocessableEntity, true},
		"not authorized, yet":   {http.StatusUnauthorized, false},
		"not found":             {http.StatusNotFound, false},
		"a conflict":            {http.StatusConflict, false},
		"too many requests":     {http.StatusTooManyRequests, false},
		"an error of theirs":    {http.StatusInternalServerError, false},
		"the server is not up":  {http.StatusServiceUnavailable, false},
		"the answer is delayed": {http.StatusGatewayTimeout, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			err := apierrors.NewGenericServerResponse(test.code, http.MethodPatch, metav1.Unversioned.WithResource("x").GroupResource(), "one", "", 0, false)
			if got := isRejected(err); got != test.want {
				t.Errorf("got %v of %v", got, err)
			}
		})
	}
}

func TestResultsGoToTheStatus(t *testing.T) {
	tests := map[string]struct {
		merge m
		id    string
		value any
		want  m
	}{
		"alone":                    {nil, "fn", "x", m{"status": m{"fn": "x"}}},
		"next to other fields":     {m{"spec": m{"a": "b"}}, "fn", "x", m{"spec": m{"a": "b"}, "status": m{"fn": "x"}}},
		"next to a status":         {m{"status": m{"phase": "Ready"}}, "fn", "x", m{"status": m{"phase": "Ready", "fn": "x"}}},
		"of a sub-handler":         {nil, "c/item1", "x", m{"status": m{"c/item1": "x"}}},
		"of a handler with a dot":  {nil, "fn/spec.field", m{"a": "b"}, m{"status": m{"fn/spec.field": m{"a": "b"}}}},
		"in place of an own patch": {m{"status": m{"fn": m{"own": "y"}}}, "fn", "x", m{"status": m{"fn": "x"}}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := withResult(test.merge, test.id, test.value); !reflect.DeepEqual(got, test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

// A proxy that responds with an HTML page says nothing about the edits.
func TestPassingRejectionsBlameNoHandler(t *testing.T) {
	proxy := func(code int) error {
		return apierrors.NewGenericServerResponse(code, http.MethodPatch, metav1.Unversioned.WithResource("x").GroupResource(), "one", "<html>", 0, true)
	}
	tests := map[string]struct {
		response error
		sent     string
	}{
		"400 of a proxy":                         {proxy(http.StatusBadRequest), "PATCH, GET"},
		"403 of a proxy":                         {proxy(http.StatusForbidden), "PATCH, GET"},
		"413 of a proxy":                         {proxy(http.StatusRequestEntityTooLarge), "PATCH, GET"},
		"403 of the server that is not repeated": {answer(http.StatusForbidden), "PATCH, DRYRUN, DRYRUN, DRYRUN"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, m{})
			f.edit("a", set("x", "spec", "a"))
			f.edit("b", set("y", "spec", "b"))
			f.faults = []fault{{err: test.response}}
			c := f.finished(cause.Create, "a", "b")
			_ = f.writeFails(Update{Cycle: c})
			f.expectSent(test.sent)
			f.expect("ended later", f.flush().Ended, true)
			_, failed := c.Progress.Counts()
			f.expect("failed, events", []int{failed, len(f.events)}, []int{0, 0})
			f.expect("edits", []any{f.field("spec", "a"), f.field("spec", "b")}, []any{"x", "y"})
		})
	}
}

// etcd's limit for the size of an object is not a part of validations.
func TestRepeatedRejectionsBlameTheLargestEdit(t *testing.T) {
	f := newFixture(t, m{})
	f.edit("a", set("x", "spec", "a"))
	f.edit("b", set("a longer text", "spec", "b"))
	f.faults = []fault{{err: answer(http.StatusRequestEntityTooLarge)}, {err: answer(http.StatusRequestEntityTooLarge)}}
	c := f.finished(cause.Create, "a", "b")
	_ = f.writeFails(Update{Cycle: c})
	f.expect("ended later", f.flush().Ended, true)
	f.expect("unreported successes", c.Unreported, []string{"a"})
	f.expect("edits", []any{f.field("spec", "a"), f.field("spec", "b")}, []any{"x", nil})
}
