package handling

import (
	"testing"

	"github.com/onsi/gomega"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/test/testenv"
)

func TestDroppedRetriesAreReported(t *testing.T) {
	t.Parallel()
	enabled := func(a kopf.Arguments) bool { _, ok := a.Labels()["enabled"]; return ok }
	tests := map[string]struct {
		filter kopf.ChangeOption
		want   string
	}{
		"a label":       {kopf.Labels(map[string]kopf.Matcher{"enabled": kopf.Present()}), "because the label enabled does not match anymore"},
		"an annotation": {kopf.Annotations(map[string]kopf.Matcher{"enabled": kopf.Present()}), "because the annotation enabled does not match anymore"},
		"a condition":   {kopf.When(enabled), "because the function of When at handling/dropped_test.go:"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.OnCreate(examples, b.noted("retried", fail(kopf.Temporary(errNotYet, long))), kopf.ID("retried"), test.filter)
			b.OnUpdate(examples, succeed)
			b.start()
			obj := testenv.NewObject("KopfExample", b.namespace, "one", nil)
			obj.SetLabels(map[string]string{"enabled": "yes"})
			obj.SetAnnotations(map[string]string{"enabled": "yes"})
			b.submit(obj)
			b.Eventually(cluster.Current(obj)).Should(testenv.HaveAnnotation(prefix+"retried", gomega.ContainSubstring("not yet")))
			b.patch(obj, `{"metadata":{"labels":{"enabled":null},"annotations":{"enabled":null}}}`)
			b.expectHandled(obj)
			b.Expect(b.logs.With("Handler retried is not retried anymore after 1 attempt", test.want, "not yet")).To(gomega.HaveLen(1))
			b.Eventually(cluster.Events(obj)).Should(gomega.ContainElement(gomega.And(
				gomega.HavePrefix("Warning HandlerDropped: Handler retried is not retried anymore"), gomega.ContainSubstring(test.want))))
			b.Expect(b.calls.All()).To(gomega.Equal(attempts("retried", 1)))
		})
	}
}
