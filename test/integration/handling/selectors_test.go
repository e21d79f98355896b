package handling

import (
	"context"
	"testing"

	"github.com/onsi/gomega"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/model/selector"
	"github.com/kopf-go/kopf/test/testenv"
)

// twin creates an object of one of the two resources with the same name.
func (b *bench) twin(group string) {
	obj := testenv.NewObject("Twin", b.namespace, "one", nil)
	obj.SetAPIVersion(group + "/v1")
	b.submit(obj)
}

func (b *bench) resources() func(context.Context, *kopf.Change) error {
	return func(_ context.Context, c *kopf.Change) error {
		b.calls.Note("%s", c.Resource())
		return nil
	}
}

func TestSelectorsSelectResources(t *testing.T) {
	t.Parallel()
	const one, two, stricts = "twins.v1.one.example.com", "twins.v1.two.example.com", "stricts.v1.one.example.com"
	tests := map[string]struct {
		selector kopf.Selector
		served   []string
	}{
		"a name in a group":     {kopf.Resource("two.example.com", "twins"), []string{two}},
		"everything in a group": {kopf.Resource("one.example.com", kopf.Everything), []string{one, stricts}},
		"a category":            {selector.By(selector.Fields{Category: "pair"}), []string{one, two}},
		"a category in a group": {selector.By(selector.Fields{Group: "two.example.com", Category: "pair"}), []string{two}},
		"a callback":            {selector.Func(func(r selector.Resource) bool { return r.Plural == "twins" }), []string{one, two}},
		"a kind":                {selector.By(selector.Fields{Group: "one.example.com", Kind: "Strict"}), []string{stricts}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.OnCreate(test.selector, b.resources(), kopf.ID("create"))
			b.start()
			b.submit(strict(b, nil))
			b.twin("one.example.com")
			b.twin("two.example.com")
			b.Eventually(b.calls.All).Should(gomega.ConsistOf(test.served))
			b.expectRest()
			b.Expect(b.calls.All()).To(gomega.HaveLen(len(test.served)))
		})
	}
}

// Missing resources are reported, and do not affect the rest.
func TestSelectorsWithoutResourceAreReported(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		selector kopf.Selector
		warning  string
	}{
		"an ambiguous name":   {kopf.Resource("twins"), `\"twins\" is ambiguous`},
		"an unknown resource": {kopf.Resource("one.example.com", "v1", "triplets"), `\"one.example.com/v1/triplets\" selects nothing in this cluster`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.OnCreate(test.selector, b.resources(), kopf.ID("create"))
			b.OnCreate(examples, b.noted("example", succeed), kopf.ID("example"))
			b.start()
			b.twin("one.example.com")
			b.twin("two.example.com")
			b.expectHandled(b.create("one", nil))
			b.Expect(b.calls.All()).To(gomega.Equal(attempts("example", 1)))
			b.Eventually(b.logged("Some handlers will not be called", test.warning)).Should(gomega.HaveLen(1))
		})
	}
}

// The name selects the core group, as in kubectl.
func TestTwoSelectorsOfOneResourceWatchItOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.OnCreate(examples, b.noted("by_name", succeed), kopf.ID("by_name"))
	b.OnCreate(kopf.Resource("kex"), b.noted("by_short_name", succeed), kopf.ID("by_short_name"))
	b.OnCreate(selector.By(selector.Fields{Group: "kopf.dev", Category: "all"}), b.noted("by_category", succeed), kopf.ID("by_category"))
	b.start()
	b.expectHandled(b.create("one", nil))
	b.expectRest()
	b.Expect(b.calls.All()).To(gomega.Equal([]string{"by_name 0", "by_short_name 0", "by_category 0"}))
	b.Expect(b.requests.Snapshot()).To(gomega.HaveKeyWithValue(testenv.Key{Method: testenv.MethodWatch, Target: "kopfexamples"}, 1))
}
