package handling

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/onsi/gomega"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/tracing"
	"github.com/kopf-go/kopf/test/operators"
	"github.com/kopf-go/kopf/test/testenv"
)

// The requests for writes have the spans of the writes in their contexts, so that an instrumented client passes them on
// to the API server.
func TestSpans(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	var spans operators.Spans
	var mu sync.Mutex
	sent := map[string]int{}
	testenv.Strike(b.config).Begin(func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
		kind := "without a span"
		if span := operators.SpanOf(r.Context()); span != nil {
			kind = string(span.Kind) + " " + span.Subresource
		}
		mu.Lock()
		sent[kind]++
		mu.Unlock()
		return next.RoundTrip(r)
	}, func(r testenv.Request) bool { return r.Method == http.MethodPatch && r.Resource == "kopfexamples" })
	b.OnCreate(examples, func(ctx context.Context, c *kopf.Change) error {
		c.SetResult("done")
		return failing(1, 50*time.Millisecond)(ctx, c)
	}, kopf.ID("create"))
	b.OnUpdate(examples, succeed, kopf.ID("update"))
	b.OnDelete(examples, succeed, kopf.ID("delete"))
	b.start(func(o *kopf.Options) { o.Tracer = &spans })

	object := testenv.NewObject("KopfExample", b.namespace, "one", map[string]any{"field": "1"})
	object.SetAnnotations(map[string]string{"traceparent": "theirs"})
	b.submit(object)
	b.expectHandled(object)
	b.patch(object, `{"spec": {"field": "2"}}`)
	b.expectHandled(object)
	b.remove(object)
	b.expectGone(object)
	b.Eventually(func() bool {
		return !slices.ContainsFunc(spans.All(), func(s operators.RecordedSpan) bool { return s.Ends == 0 })
	}).Should(gomega.BeTrue(), spans.Tree)

	cycles := spans.Of(tracing.Cycle)
	b.Expect(cycles).To(gomega.HaveLen(3), spans.Tree)
	for i, reason := range []string{"create", "update", "delete"} {
		b.Expect(cycles[i].Reason+" "+cycles[i].Result.Outcome).To(gomega.Equal(reason+" succeeded"), spans.Tree)
		b.Expect(cycles[i].From).To(gomega.Equal("theirs"))
		b.Expect(cycles[i].IsCause).To(gomega.Equal(reason == "create"), reason)
	}
	var below []string // without the passes, which can be more on a slow machine
	for _, span := range spans.All() {
		if span.Kind == tracing.Attempt || span.Kind == tracing.Write {
			b.Expect(span.Parent.Kind).To(gomega.Equal(tracing.Pass), spans.Tree)
			b.Expect(span.Parent.Parent.Kind).To(gomega.Equal(tracing.Cycle), spans.Tree)
			b.Expect(span.UID).To(gomega.BeEquivalentTo(object.GetUID()))
			below = append(below, span.String())
		}
	}
	b.Expect(below).To(gomega.Equal([]string{
		"write finalizer (written)",
		"attempt create create 1 (retried: not yet)", "write progress (written)",
		"attempt create create 2 (succeeded)", "write status status (written)", "write handled (written)",
		"attempt update update 1 (succeeded)", "write handled (written)",
		"attempt delete delete 1 (succeeded)", "write handled (written)",
	}), spans.Tree)
	mu.Lock()
	defer mu.Unlock()
	b.Expect(sent).To(gomega.Equal(map[string]int{"write ": 5, "write status": 1}))
}
