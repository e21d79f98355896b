package ensure

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/test/testenv"
)

// A change of an index changes the children of all objects whose handler watches it. An event of
// an indexed object without a change of its values calls nothing.
func TestWatchedIndexChangesTheChildren(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	themes := kopf.NewIndex(b.Registry, kopf.Resource("v1", "secrets"), func(_ context.Context, i *kopf.Indexed) (map[string][]string, error) {
		return map[string][]string{"all": {i.Name()}}, nil
	}, kopf.Labels(map[string]kopf.Matcher{"theme": kopf.Present()}), kopf.ID("themes"))
	b.Ensure(shops, b.counted(func(_ context.Context, c *kopf.Change) ([]client.Object, error) {
		names := slices.Sorted(slices.Values(slices.Concat(themes.Get("all")...)))
		return []client.Object{object(configMaps, "", c.Name(), map[string]any{"data": map[string]any{"themes": strings.Join(names, " ")}})}, nil
	}), kopf.ID("children"), kopf.WatchIndex(themes))
	b.start()
	for _, name := range []string{"one", "two"} {
		b.expectHandled(b.shop(name, nil))
	}
	b.requests.Reset()

	dark := object(secrets, b.namespace, "dark", nil)
	dark.SetLabels(map[string]string{"theme": ""})
	b.submit(dark)
	for _, name := range []string{"one", "two"} {
		b.expectChild(b.of(configMaps, name), testenv.HavePath("data.themes", "dark"))
	}
	b.expectWrites(0, 2)

	calls, seen := b.calls.Load(), themes.Len()
	b.patch(dark, `{"metadata":{"annotations":{"other":"x"}}}`)
	b.patch(dark, `{"metadata":{"labels":{"theme":"x"}}}`)
	b.expectHandled(b.shop("three", nil)) // by now, the operator has seen the changes, too
	b.Consistently(b.calls.Load).WithTimeout(1500*time.Millisecond).Should(gomega.Equal(calls+1), b.story)
	b.Expect(themes.Len()).To(gomega.Equal(seen))
	b.requests.Reset()

	b.remove(dark)
	for _, name := range []string{"one", "two", "three"} {
		b.expectChild(b.of(configMaps, name), testenv.HavePath("data.themes", ""))
	}
	b.expectWrites(0, 3)
}
