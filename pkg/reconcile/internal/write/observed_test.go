package write

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"

	"github.com/kopf-go/kopf/pkg/metrics"
	"github.com/kopf-go/kopf/pkg/model/object"
)

// observer keeps what it is told about writes.
type observer struct{ log []string }

func (o *observer) BeginWrite() { o.log = append(o.log, "begins") }

func (o *observer) EndWrite(before, after *object.Body, certain bool) {
	if after == nil {
		o.log = append(o.log, fmt.Sprintf("nothing is written, certain: %t", certain))
		return
	}
	size := func(body *object.Body) any {
		value, _ := body.Lookup(object.Path{"spec", "size"})
		return value
	}
	o.log = append(o.log, fmt.Sprintf("the size %v becomes %v, certain: %t", size(before), size(after), certain))
}

func (o *observer) trace(ctx context.Context, subresource string, _ metrics.Reason) (context.Context, func(metrics.Answer, error)) {
	o.log = append(o.log, "span of "+subresource)
	return ctx, func(_ metrics.Answer, err error) {
		o.log = append(o.log, fmt.Sprintf("span ends, failed: %t", err != nil))
	}
}

// Without a response, the write may have been committed.
func TestWritesAreObserved(t *testing.T) {
	const nothing = "nothing is written, certain: true"
	for name, test := range map[string]struct {
		fault fault
		want  string
	}{
		"it is committed":          {fault{}, "the size 1 becomes 2, certain: true"},
		"it is rejected":           {fault{err: answer(http.StatusUnprocessableEntity)}, nothing},
		"a policy forbids it":      {fault{err: answer(http.StatusForbidden)}, nothing},
		"a permission is missing":  {fault{err: noPermission()}, nothing},
		"the client is unknown":    {fault{err: answer(http.StatusUnauthorized)}, nothing},
		"others are faster":        {fault{err: answer(http.StatusConflict)}, nothing},
		"the response is lost":     {fault{lost: errors.New("connection reset")}, "the size 1 becomes 2, certain: false"},
		"the server has a problem": {fault{err: answer(http.StatusInternalServerError)}, "the size 1 becomes 2, certain: false"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, nil)
			o := &observer{}
			f.target.Observer = o
			f.target.Trace = o.trace
			f.refresh(f.cached())
			f.faults = []fault{test.fault}
			f.edit("a", set(int64(2), "spec", "size"))
			_, err := f.Write(t.Context(), Update{})
			if len(o.log) < 4 || o.log[0] != "span of " || o.log[1] != "begins" || o.log[2] != test.want || o.log[3] != fmt.Sprintf("span ends, failed: %t", name != "it is committed") {
				t.Errorf("got %q, %v", o.log, err)
			}
		})
	}
}
