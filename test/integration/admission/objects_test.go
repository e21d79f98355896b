package admission

import (
	"context"
	"fmt"
	"testing"

	"github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/test/testenv"
)

func checkSize(_ context.Context, a *kopf.Admission) error {
	size, found := a.Spec().Int64("size")
	switch {
	case !found:
		a.Warn("There is no size.")
		return nil
	case size > 100:
		return kopf.Reject(fmt.Sprintf("The size %d is too large.", size), 499)
	default:
		return nil
	}
}

func TestValidatingHandlersAdmitRejectAndWarn(t *testing.T) {
	t.Parallel()
	g := gomega.NewWithT(t)
	registry := kopf.NewRegistry()
	registry.OnValidate(examples, checkSize)
	registry.OnValidate(examples, func(_ context.Context, a *kopf.Admission) error {
		if _, wanted := a.Spec().String("panic"); wanted {
			panic("the secret of the operator")
		}
		return nil
	}, kopf.ID("panicking"))
	o := start(t, registry)
	o.validating(t, hook{path: "checkSize"}, hook{path: "panicking"})
	c, warnings := newClientWithWarnings(t)

	g.Expect(c.Create(t.Context(), o.object("small", map[string]any{"size": int64(1)}))).To(gomega.Succeed())
	g.Expect(warnings.all()).To(gomega.BeEmpty())
	g.Expect(c.Create(t.Context(), o.object("none", nil))).To(gomega.Succeed())
	g.Expect(warnings.all()).To(gomega.Equal([]string{"There is no size."}))
	g.Expect(c.Create(t.Context(), o.object("large", map[string]any{"size": int64(101)}))).To(haveCode(499,
		`admission webhook "checksize-0.admission.kopf.dev" denied the request: The size 101 is too large.`))

	err := c.Create(t.Context(), o.object("panicking", map[string]any{"panic": "please"}))
	g.Expect(err).To(haveCode(500, "the handler panicking panicked"))
	g.Expect(err).NotTo(gomega.MatchError(gomega.ContainSubstring("secret of the operator")))
	g.Expect(c.Create(t.Context(), o.object("after", map[string]any{"size": int64(1)}))).To(gomega.Succeed())
}

func TestMutatingHandlersChangeTheObject(t *testing.T) {
	t.Parallel()
	g := gomega.NewWithT(t)
	registry := kopf.NewRegistry()
	registry.OnMutate(examples, func(_ context.Context, a *kopf.Admission) error {
		a.Patch().SetAnnotation("example.com/a", "escaped/~1")
		a.Patch().Remove("metadata", "labels", "example.com/gone")
		a.Patch().Remove("spec", "gone")
		a.Patch().Merge(map[string]any{"spec": map[string]any{"map/s": map[string]any{"a~": nil, "b": 2}}})
		a.Patch().Apply(func(obj *unstructured.Unstructured) error {
			return unstructured.SetNestedStringSlice(obj.Object, []string{"c", "a"}, "spec", "list")
		})
		return nil
	}, kopf.ID("change"))
	registry.OnMutate(examples, func(_ context.Context, a *kopf.Admission) error {
		list, _ := a.Spec().Strings("list")
		a.Patch().Set(append(list, "last"), "spec", "list")
		return nil
	}, kopf.ID("later"))
	o := start(t, registry)
	o.mutating(t, hook{path: "mutating"})

	object := o.object("one", map[string]any{
		"gone": "x", "list": []any{"a", "b"}, "map/s": map[string]any{"a~": "x", "c": "kept"}, "number": int64(9007199254740993),
	})
	object.SetLabels(map[string]string{"example.com/gone": "x", "kept": "y"})
	g.Expect(cluster.Client().Create(t.Context(), object)).To(gomega.Succeed())
	g.Expect(cluster.Current(object)()).To(gomega.SatisfyAll(
		testenv.HaveAnnotation("example.com/a", "escaped/~1"),
		testenv.HavePath("metadata.labels", map[string]any{"kept": "y"}),
		testenv.HavePath("spec", map[string]any{
			"list": []any{"c", "a", "last"}, "map/s": map[string]any{"b": int64(2), "c": "kept"}, "number": int64(9007199254740993),
		})))
	g.Expect(cluster.Client().Delete(t.Context(), object)).To(gomega.Succeed())
}

func TestHandlerKnowsADryRun(t *testing.T) {
	t.Parallel()
	g := gomega.NewWithT(t)
	var seen notes
	registry := kopf.NewRegistry()
	registry.OnValidate(examples, func(_ context.Context, a *kopf.Admission) error {
		seen.add(fmt.Sprintf("%s %v %s", a.Operation(), a.DryRun(), a.UserInfo().Username))
		return nil
	}, kopf.ID("look"), kopf.SideEffects(), kopf.Operations("CREATE", "UPDATE"))
	o := start(t, registry)
	o.validating(t, hook{path: "look", sideEffects: true})
	probes := len(seen.all())
	object := o.object("one", nil)
	g.Expect(cluster.Client().Create(t.Context(), object.DeepCopy(), client.DryRunAll)).To(gomega.Succeed())
	g.Expect(cluster.Client().Create(t.Context(), object)).To(gomega.Succeed())
	g.Expect(cluster.Client().Delete(t.Context(), object)).To(gomega.Succeed())
	g.Expect(seen.all()[probes:]).To(gomega.HaveExactElements(
		gomega.HavePrefix("CREATE true "), gomega.MatchRegexp("CREATE false .+")))
}

func TestDeletionsAreReviewed(t *testing.T) {
	t.Parallel()
	g := gomega.NewWithT(t)
	registry := kopf.NewRegistry()
	registry.OnValidate(examples, func(_ context.Context, a *kopf.Admission) error {
		if locked, _ := a.Spec().Bool("locked"); locked && !a.New().Exists() {
			return kopf.Reject(a.Name()+" is locked.", 423)
		}
		return nil
	}, kopf.ID("keep"), kopf.Operations("DELETE"))
	registry.OnMutate(examples, func(context.Context, *kopf.Admission) error {
		return kopf.Reject("A mutating handler was called for a deletion.", 400)
	}, kopf.ID("uninvited"))
	o := start(t, registry)
	o.validating(t, hook{path: "keep"})
	o.mutating(t, hook{path: "uninvited", operations: []operation{"DELETE"}})

	locked, open := o.object("locked", map[string]any{"locked": true}), o.object("open", nil)
	g.Expect(cluster.Client().Create(t.Context(), locked)).To(gomega.Succeed())
	g.Expect(cluster.Client().Create(t.Context(), open)).To(gomega.Succeed())
	g.Expect(cluster.Client().Delete(t.Context(), locked)).To(haveCode(423, "locked is locked."))
	g.Expect(cluster.Client().Delete(t.Context(), open)).To(gomega.Succeed())

	everything := &unstructured.Unstructured{}
	everything.SetGroupVersionKind(locked.GroupVersionKind())
	g.Expect(cluster.Client().DeleteAllOf(t.Context(), everything, client.InNamespace(o.namespace))).To(haveCode(423, "locked is locked."))
}

// A rejection counts, also with IgnoreFailures, and only an unreachable handler is ignored.
func TestIgnoreFailuresAdmitsOnlyWhatCannotBeReviewed(t *testing.T) {
	t.Parallel()
	g := gomega.NewWithT(t)
	registry := kopf.NewRegistry()
	registry.OnValidate(examples, func(_ context.Context, a *kopf.Admission) error {
		if a.Spec().Has("refused") {
			return kopf.Reject("no", 400)
		}
		return nil
	}, kopf.ID("lenient"), kopf.IgnoreFailures())
	o := start(t, registry)
	o.validating(t, hook{path: "lenient", ignore: true}, hook{path: "unknown", ignore: true})
	g.Expect(cluster.Client().Create(t.Context(), o.object("one", nil))).To(gomega.Succeed())
	g.Expect(cluster.Client().Create(t.Context(), o.object("two", map[string]any{"refused": true}))).To(haveCode(400, "no"))
}

func TestUnknownPathRejects(t *testing.T) {
	t.Parallel()
	g := gomega.NewWithT(t)
	o := start(t, kopf.NewRegistry())
	o.validating(t, hook{path: "unknown", operations: []operation{"UPDATE"}})
	object := o.object("one", nil)
	g.Expect(cluster.Client().Create(t.Context(), object)).To(gomega.Succeed())
	object.SetLabels(map[string]string{"a": "b"})
	g.Expect(cluster.Client().Update(t.Context(), object)).To(haveCode(500, "failed calling webhook"))
}
