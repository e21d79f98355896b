package ensure

import (
	"context"
	"testing"
	"time"

	"github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/model/convergence"
	"github.com/kopf-go/kopf/test/testenv"
)

// themed returns a config map with the fields, and a service.
func themed(fields ...string) func(context.Context, *kopf.Change) ([]client.Object, error) {
	return func(_ context.Context, c *kopf.Change) ([]client.Object, error) {
		data := map[string]any{}
		for _, field := range fields {
			data[field] = "x"
		}
		return []client.Object{object(configMaps, "", c.Name(), map[string]any{"data": data}), family("", c.Name(), 1)[1]}, nil
	}
}

func named(name string, formers ...string) func(*kopf.Options) {
	return func(o *kopf.Options) { o.Settings.Name, o.Settings.FormerNames = name, formers }
}

// appliers returns the managers that have applied a child.
func appliers(u *unstructured.Unstructured) (managers []string) {
	for _, entry := range u.GetManagedFields() {
		if entry.Operation == "Apply" {
			managers = append(managers, entry.Manager)
		}
	}
	return managers
}

// The operator has another name after a restart. Each child is written once; then fields that the
// function drops go, because nothing else owns them.
func TestRenamedOperatorTakesItsChildrenOver(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.Ensure(shops, themed("color", "font"), kopf.ID("children"))
	first := b.start(named("operator-a"))
	shop := b.expectHandled(b.shop("one", nil))
	label := b.current(b.of(configMaps, "one")).GetLabels()[label]
	first.Stop()

	b.requests.Reset()
	second := b.start(named("operator-b", "operator-a"))
	b.Eventually(func() []string { return appliers(b.current(b.of(configMaps, "one"))) }).Should(gomega.Equal([]string{"operator-b"}), b.story)
	b.Eventually(func() []string { return appliers(b.current(b.of(services, "one"))) }).Should(gomega.Equal([]string{"operator-b"}), b.story)
	b.expectWrites(0, 2)
	b.Expect(b.current(b.of(configMaps, "one")).GetLabels()).To(gomega.HaveKeyWithValue(convergence.OwnerLabel, label))

	b.patch(b.of(configMaps, "one"), `{"data":{"font":"y"}}`)
	b.expectChild(b.of(configMaps, "one"), testenv.HavePath("data.font", "x"))
	b.requests.Reset()
	second.Stop()
	b.Registry = kopf.NewRegistry()
	b.Ensure(shops, themed("color"), kopf.ID("children"))
	third := b.start(named("operator-b", "operator-a"))
	b.expectChild(b.of(configMaps, "one"), testenv.HavePath("data", map[string]any{"color": "x"}))
	b.expectWrites(0, 1)

	// A child that is dropped goes, too, although its label is from the former name.
	third.Stop()
	b.Registry = kopf.NewRegistry()
	b.Ensure(shops, func(ctx context.Context, c *kopf.Change) ([]client.Object, error) {
		all, err := themed("color")(ctx, c)
		return all[:1], err
	}, kopf.ID("children"))
	b.start(named("operator-c", "operator-b", "operator-a"))
	b.expectGone(b.of(services, "one"))
	b.Eventually(func() []string { return appliers(b.current(b.of(configMaps, "one"))) }).Should(gomega.Equal([]string{"operator-c"}), b.story)
	b.expectHandled(shop)
}

// Without its former name, the operator changes and deletes nothing, and says what to do. With the
// permission to adopt, the former name remains a co-owner, until it is added.
func TestRenamedOperatorWithoutTheFormerName(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.Ensure(shops, themed("color", "font"), kopf.ID("children"), kopf.Backoff(time.Second))
	first := b.start(named("operator-a"))
	b.expectHandled(b.shop("one", nil))
	first.Stop()

	before := b.current(b.of(configMaps, "one"))
	b.Registry = kopf.NewRegistry()
	b.Ensure(shops, themed("color"), kopf.ID("children"), kopf.Backoff(time.Second))
	second := b.start(named("operator-b"))
	b.Eventually(b.logged("settings.FormerNames")).ShouldNot(gomega.BeEmpty(), b.story)
	b.Expect(b.current(before)).To(gomega.Equal(before))
	second.Stop()

	b.Registry = kopf.NewRegistry()
	b.Ensure(shops, themed("color"), kopf.ID("children"), kopf.Backoff(time.Second), kopf.AdoptExisting())
	third := b.start(named("operator-b"))
	b.Eventually(func() []string { return appliers(b.current(before)) }).Should(gomega.ConsistOf("operator-a", "operator-b"), b.story)
	b.Expect(b.current(before)).To(testenv.HavePath("data", map[string]any{"color": "x", "font": "x"}))
	third.Stop()

	b.Registry = kopf.NewRegistry()
	b.Ensure(shops, themed("color"), kopf.ID("children"), kopf.Backoff(time.Second))
	b.start(named("operator-b", "operator-a"))
	b.Eventually(func() []string { return appliers(b.current(before)) }).Should(gomega.Equal([]string{"operator-b"}), b.story)
	b.expectChild(before, testenv.HavePath("data", map[string]any{"color": "x"}))
}
