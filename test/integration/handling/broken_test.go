package handling

import (
	"testing"

	"github.com/onsi/gomega"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/test/testenv"
)

// Anyone with access can write annotations: they must neither stop nor crash the operator.
func TestUnreadableRecordsCountAsAbsent(t *testing.T) {
	t.Parallel()
	texts := map[string]string{
		"an empty text":               ``,
		"not JSON":                    `sesame`,
		"a list":                      `["sesame"]`,
		"a number":                    `5`,
		"a wrong type":                `{"retries":"sesame"}`,
		"a negative number":           `{"retries":-1}`,
		"a time of a wrong type":      `{"started":5}`,
		"a text that is not a time":   `{"started":"sesame"}`,
		"a time that is too late":     `{"started":"2020-01-01T00:00:00","delayed":"9999-12-31T00:00:00"}`,
		"references of a wrong type":  `{"subrefs":"sesame"}`,
		"a wrong type of the outcome": `{"success":"sesame"}`,
	}
	for name, text := range texts {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.OnCreate(examples, b.noted("create", failing(1, 0)), kopf.ID("create"))
			obj := testenv.NewObject("KopfExample", b.namespace, "one", nil)
			obj.SetAnnotations(map[string]string{prefix + "create": text})
			b.submit(obj)
			b.start()
			b.expectHandled(obj)
			b.expectRest()
			b.Expect(b.calls.All()).To(gomega.Equal(attempts("create", 2)))
			b.expectUnreadable(obj, "create")
		})
	}
}

// expectUnreadable checks that the annotation is reported once, in the log and in an event,
// without its content.
func (b *bench) expectUnreadable(obj *unstructuredObject, key string) {
	b.t.Helper()
	b.Eventually(b.logged("cannot be read", prefix+key)).Should(gomega.HaveLen(1))
	b.Expect(b.logs.With("sesame")).To(gomega.BeEmpty())
	b.Eventually(cluster.Events(obj)).Should(gomega.ContainElement(gomega.HavePrefix("Warning UnreadableState: ")))
	events, err := cluster.Events(obj)()
	b.Expect(err).NotTo(gomega.HaveOccurred())
	b.Expect(events).To(gomega.HaveEach(gomega.Not(gomega.ContainSubstring("sesame"))))
}

func TestUnusualRecordsAreAccepted(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		text  string
		calls []string
	}{
		"empty":                           {`{}`, []string{"create 0"}},
		"null":                            {`null`, []string{"create 0"}},
		"with unknown fields":             {`{"started":"2020-01-01T00:00:00","purpose":"create","retries":3,"colour":"red"}`, []string{"create 3"}},
		"started in the future":           {`{"started":"2200-01-01T00:00:00","purpose":"create","retries":3}`, []string{"create 3"}},
		"delayed in the past":             {`{"started":"1980-01-01T00:00:00","delayed":"1990-01-01T00:00:00","purpose":"create","retries":3}`, []string{"create 3"}},
		"without a purpose":               {`{"started":"2020-01-01T00:00:00","retries":3}`, []string{"create 3"}},
		"of another purpose":              {`{"started":"2020-01-01T00:00:00","purpose":"delete","retries":3,"success":true}`, []string{"create 0"}},
		"of an unknown purpose":           {`{"started":"2020-01-01T00:00:00","purpose":"sesame","retries":3,"success":true}`, []string{"create 0"}},
		"with a reference to itself":      {`{"started":"2020-01-01T00:00:00","purpose":"create","retries":3,"subrefs":["create","create"]}`, []string{"create 3"}},
		"with references to missing ones": {`{"started":"2020-01-01T00:00:00","purpose":"create","retries":3,"subrefs":["x/y","","//"]}`, []string{"create 3"}},
		"with both success and failure":   {`{"started":"2020-01-01T00:00:00","purpose":"create","retries":3,"success":true,"failure":true}`, []string{}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.OnCreate(examples, b.noted("create", succeed), kopf.ID("create"), kopf.Timeout(250*365*24*long))
			obj := testenv.NewObject("KopfExample", b.namespace, "one", nil)
			obj.SetAnnotations(map[string]string{prefix + "create": test.text})
			b.submit(obj)
			b.start()
			b.expectHandled(obj)
			b.expectRest()
			b.Expect(b.calls.All()).To(gomega.Equal(test.calls))
			b.Expect(b.logs.With("cannot be read")).To(gomega.BeEmpty())
		})
	}
}

func TestUnreadableBaseCountsAsAbsent(t *testing.T) {
	t.Parallel()
	texts := map[string]string{
		"an empty text":      ``,
		"not JSON":           `{sesame`,
		"a list":             `["sesame"]`,
		"a string":           `"sesame"`,
		"an unknown version": `{"kopf-hashed":2,"sesame":1}`,
		"invalid hashes":     `{"kopf-hashed":1,"hashed":{"spec":{"a":"sesame"}}}`,
	}
	for name, text := range texts {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.OnCreate(examples, b.noted("create", succeed), kopf.ID("create"))
			b.OnUpdate(examples, b.noted("update", succeed), kopf.ID("update"))
			obj := testenv.NewObject("KopfExample", b.namespace, "one", map[string]any{"field": "1"})
			obj.SetAnnotations(map[string]string{handled: text})
			b.submit(obj)
			b.start()
			b.expectHandled(obj)
			b.expectRest()
			b.Expect(b.calls.All()).To(gomega.Equal(attempts("create", 1)))
			b.expectUnreadable(obj, "last-handled-configuration")
		})
	}
}

// The essence from the start of an open cycle is optional.
func TestOpenCycleContinuesWithoutItsEssence(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.OnUpdate(examples, b.seeing("update", succeed), kopf.ID("update"))
	obj := testenv.NewObject("KopfExample", b.namespace, "one", map[string]any{"field": "2"})
	obj.SetAnnotations(map[string]string{
		handled: `{"spec":{"field":"1"}}`, handled + "-started": `sesame`,
		prefix + "update": `{"started":"2020-01-01T00:00:00","purpose":"update","retries":3}`,
	})
	b.submit(obj)
	b.start()
	b.expectHandled(obj)
	b.expectRest()
	b.Expect(b.calls.All()).To(gomega.Equal([]string{"update 1->2"}))
	b.expectUnreadable(obj, "last-handled-configuration-started")
}
