package ensure

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/onsi/gomega"
	apidiscovery "k8s.io/api/apidiscovery/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/test/operators"
	"github.com/kopf-go/kopf/test/testenv"
)

// stale is what the API server answers about an API group whose own server does not respond.
func stale(group string) testenv.Fault {
	return func(sent *http.Request, next http.RoundTripper) (*http.Response, error) {
		answer, err := next.RoundTrip(sent)
		if err != nil {
			return nil, err
		}
		defer func() { _ = answer.Body.Close() }()
		var list apidiscovery.APIGroupDiscoveryList
		if err := json.NewDecoder(answer.Body).Decode(&list); err != nil {
			return nil, err
		}
		for i := range list.Items {
			if list.Items[i].Name != group {
				continue
			}
			for j := range list.Items[i].Versions {
				list.Items[i].Versions[j].Freshness, list.Items[i].Versions[j].Resources = apidiscovery.DiscoveryFreshnessStale, nil
			}
		}
		text, err := json.Marshal(list)
		if err != nil {
			return nil, err
		}
		answer.Body, answer.ContentLength = io.NopCloser(bytes.NewReader(text)), int64(len(text))
		answer.Header.Set("Content-Length", strconv.Itoa(len(text)))
		return answer, nil
	}
}

// While the API group of its children cannot be discovered, it is not known which children there are: no object is
// released, and no child is forgotten.
func TestNothingIsReleasedWhileTheChildrenAreUnknown(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	const group = "silent.example.com"
	b.define(group, "v1")
	elsewhere := cluster.Namespace(t)
	part := object(partKind(group, "v1"), elsewhere, "part", map[string]any{"spec": map[string]any{"color": "red"}})
	b.Ensure(shops, func(_ context.Context, c *kopf.Change) ([]client.Object, error) {
		if less, _ := c.Spec().Bool("less"); less {
			return nil, nil
		}
		return []client.Object{part.DeepCopy()}, nil
	}, kopf.ID("children"), kopf.AllowEmpty())
	b.Eventually(b.servesParts(group, "v1")).Should(gomega.Succeed())
	faults := testenv.Strike(b.config)
	var operator *operators.Operator
	restart := func() {
		if operator != nil {
			operator.Stop()
		}
		operator = b.start()
	}
	restart()
	shop := b.expectHandled(b.shop("one", map[string]any{"x": int64(1)}))
	b.expectChild(part, beOurs())

	fail := func() {
		faults.Begin(stale(group), func(r testenv.Request) bool { return strings.HasPrefix(r.URI, "/apis?") || r.URI == "/apis" })
	}
	isUnknown := func() []string { return b.logs.With("API group cannot be discovered") }
	fail()
	restart()
	b.patch(shop, `{"spec":{"less":true}}`)
	b.Eventually(isUnknown).ShouldNot(gomega.BeEmpty(), b.story)
	b.Expect(cluster.Exists(part)()).To(gomega.BeTrue())
	faults.Heal()
	b.expectGone(part)
	b.patch(shop, `{"spec":{"less":null}}`)
	b.expectChild(part, beOurs())
	b.expectRest()

	fail()
	restart()
	before := len(isUnknown())
	b.remove(shop)
	b.Eventually(func() int { return len(isUnknown()) }).Should(gomega.BeNumerically(">", before), b.story)
	b.Expect(b.current(shop).GetFinalizers()).NotTo(gomega.BeEmpty())
	b.Expect(cluster.Exists(part)()).To(gomega.BeTrue())
	faults.Heal()
	b.expectGone(shop)
	b.Expect(cluster.Exists(part)()).To(gomega.BeFalse(), b.story)
}
