package webhook

import (
	"net/http"
	"testing"

	"github.com/kopf-go/kopf/internal/handler"
)

func TestNoTracerCostsNothing(t *testing.T) {
	w := &webhook{}
	e := &evaluation{webhook: w}
	d := &handler.Declaration{ID: "fn"}
	request := &admissionRequest{}
	headers := http.Header{}
	ctx := t.Context()
	allocations := testing.AllocsPerRun(100, func() {
		_, end := w.traceReview(ctx, request, headers)
		end(nil)
		_, endAttempt := e.traceAttempt(ctx, d)
		endAttempt(nil)
	})
	if allocations > 0 {
		t.Errorf("without a tracer, there are %g allocations", allocations)
	}
}
