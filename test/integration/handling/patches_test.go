package handling

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/model/patch"
	"github.com/kopf-go/kopf/test/testenv"
)

// interfere changes the handled object with another client.
func interfere(ctx context.Context, c *kopf.Change, merge string) error {
	return c.Client().Patch(ctx, testenv.NewObject("KopfExample", c.Namespace(), c.Name(), nil), mergePatch(merge))
}

func addItem(item string) func(*unstructured.Unstructured) error {
	return func(obj *unstructured.Unstructured) error {
		items, _, err := unstructured.NestedStringSlice(obj.Object, "spec", "items")
		if err != nil {
			return err
		}
		return unstructured.SetNestedStringSlice(obj.Object, append(items, item), "spec", "items")
	}
}

func TestPatchesOfHandlersAreWritten(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		patch func(p *patch.Patch)
		spec  map[string]any
	}{
		"a field is set": {
			func(p *patch.Patch) { p.Set("new", "spec", "a", "b") }, map[string]any{"a": map[string]any{"b": "new"}, "c": "old", "items": []any{"1"}},
		},
		"a mapping is replaced": {
			func(p *patch.Patch) { p.Set(map[string]any{"d": 1}, "spec") }, map[string]any{"d": int64(1)},
		},
		"mappings are merged": {
			func(p *patch.Patch) { p.Merge(map[string]any{"spec": map[string]any{"c": nil, "d": 1}}) },
			map[string]any{"a": map[string]any{"b": "old"}, "d": int64(1), "items": []any{"1"}},
		},
		"a field is removed": {
			func(p *patch.Patch) { p.Remove("spec", "a", "b") }, map[string]any{"a": map[string]any{}, "c": "old", "items": []any{"1"}},
		},
		"transformations come last, one after the other": {
			func(p *patch.Patch) { p.Apply(addItem("2")); p.Apply(addItem("3")); p.Remove("spec", "items") },
			map[string]any{"a": map[string]any{"b": "old"}, "c": "old", "items": []any{"2", "3"}},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.OnCreate(examples, b.noted("create", func(ctx context.Context, c *kopf.Change) error {
				test.patch(c.Patch())
				return interfere(ctx, c, `{"metadata":{"labels":{"theirs":"kept"}}}`)
			}), kopf.ID("create"))
			b.start()
			obj := b.create("one", map[string]any{"a": map[string]any{"b": "old"}, "c": "old", "items": []any{"1"}})
			b.Eventually(b.calls.All).Should(gomega.Equal(attempts("create", 1)))
			b.expectRest()
			b.Expect(b.expectHandled(obj)).To(gomega.SatisfyAll(
				testenv.HavePath("spec", test.spec), testenv.HavePath("metadata.labels.theirs", "kept")))
			b.Expect(b.calls.All()).To(gomega.Equal(attempts("create", 1)))
		})
	}
}

func TestTransformationSeesChangesByOthers(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.OnCreate(examples, b.noted("create", func(ctx context.Context, c *kopf.Change) error {
		c.Patch().Apply(addItem("ours"))
		return interfere(ctx, c, `{"spec":{"items":["theirs"]}}`)
	}), kopf.ID("create"))
	b.start()
	obj := b.create("one", map[string]any{"items": []any{"first"}})
	b.Eventually(cluster.Current(obj)).Should(testenv.HavePath("spec.items", []any{"theirs", "ours"}))
	b.expectHandled(obj)
	b.expectRest()
	b.Expect(b.calls.All()).To(gomega.Equal(attempts("create", 1)))
}

func TestInvalidPatchFailsItsHandler(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		patch   func(p *patch.Patch)
		problem string
	}{
		"of fields that handlers must not change": {
			func(p *patch.Patch) { p.Set("other", "metadata", "name") }, "metadata.name",
		},
		"to a value that is not JSON": {
			func(p *patch.Patch) { p.Set(make(chan int), "spec", "field") }, "spec.field",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.OnCreate(examples, b.noted("create", func(_ context.Context, c *kopf.Change) error { test.patch(c.Patch()); return nil }), kopf.ID("create"))
			b.OnCreate(examples, b.noted("other", returning("kept")), kopf.ID("other"))
			b.start()
			obj := b.create("one", nil)
			b.Expect(b.expectHandled(obj)).To(testenv.HavePath("status", map[string]any{"other": "kept"}))
			b.expectRest()
			b.Expect(b.calls.All()).To(gomega.Equal([]string{"create 0", "other 0"}))
			b.Eventually(b.logged("The creation is processed: 1 succeeded; 1 failed.")).Should(gomega.HaveLen(1))
			b.Eventually(cluster.Events(obj)).Should(gomega.ContainElement(gomega.SatisfyAll(
				gomega.HavePrefix("Warning WriteRejected: Handler create failed"), gomega.ContainSubstring(test.problem))))
		})
	}
}

// As in docs/patching.md.
func TestConditionalUpdateKeepsWhatAnotherHandlerHasWritten(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	phase := func(phase string) func(context.Context, *kopf.Change) error {
		return func(_ context.Context, c *kopf.Change) error {
			c.Patch().Set(phase, "status", "phase")
			return nil
		}
	}
	b.OnCreate(examples, phase("BackingUp"), kopf.ID("begin"))
	b.OnCreate(examples, phase("Failed"), kopf.ID("fail"))
	b.OnCreate(examples, func(_ context.Context, c *kopf.Change) error {
		c.Patch().Apply(func(obj *unstructured.Unstructured) error {
			if phase, _, _ := unstructured.NestedString(obj.Object, "status", "phase"); phase != "BackingUp" {
				return nil
			}
			return unstructured.SetNestedField(obj.Object, "Ready", "status", "phase")
		})
		return nil
	}, kopf.ID("end"))
	b.start()
	obj := b.create("one", nil)
	b.Expect(b.expectHandled(obj)).To(testenv.HavePath("status.phase", "Failed"))
}

// The error of a transformation counts as if the handler had returned it.
func TestErrorsOfTransformations(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		transform patch.Transform
		options   []kopf.ChangeOption
		calls     int
		event     string // a part of it
	}{
		"a regular error is retried after the backoff": {
			func(*unstructured.Unstructured) error { return errBroken },
			[]kopf.ChangeOption{kopf.Backoff(time.Millisecond), kopf.Retries(3)},
			3, "Warning HandlerFailed: Handler create failed permanently: handler create has used up its 3 attempts: the change of the object failed: broken",
		},
		"a panic is a regular error": {
			func(*unstructured.Unstructured) error { panic("oops") },
			[]kopf.ChangeOption{kopf.Errors(kopf.ErrorsPermanent)},
			1, "Warning HandlerFailed: Handler create failed permanently: the change of the object failed: panic: oops",
		},
		"a temporary error is retried after its delay": {
			func(*unstructured.Unstructured) error { return kopf.Temporary(errBroken, time.Millisecond) },
			[]kopf.ChangeOption{kopf.Retries(2)},
			2, "Warning HandlerRetrying: Handler create will be retried: the change of the object failed: broken",
		},
		"a permanent error ends the handler": {
			func(*unstructured.Unstructured) error { return kopf.Permanent(errBroken) }, nil,
			1, "Warning HandlerFailed: Handler create failed permanently: the change of the object failed: broken",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.OnCreate(examples, b.noted("create", func(_ context.Context, c *kopf.Change) error {
				c.Patch().Set("lost", "spec", "field")
				c.Patch().Apply(test.transform)
				return nil
			}), append(test.options, kopf.ID("create"))...)
			b.OnCreate(examples, b.noted("other", returning("kept")), kopf.ID("other"))
			b.start()
			obj := b.create("one", nil)
			b.Expect(b.expectHandled(obj)).To(gomega.And(
				testenv.HavePath("status", map[string]any{"other": "kept"}), testenv.HavePath("spec.field", nil)))
			b.expectRest()
			b.Expect(b.calls.All()).To(gomega.ConsistOf(append(attempts("create", test.calls), "other 0")))
			b.Eventually(b.logged("The creation is processed: 1 succeeded; 1 failed.")).Should(gomega.HaveLen(1))
			b.Eventually(cluster.Events(obj)).Should(gomega.ContainElement(gomega.HavePrefix(test.event)))
		})
	}
}

// The recipe from the tips: do not call a handler again.
func TestPatchOfAFailedHandlerIsWritten(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.OnUpdate(examples, b.noted("update", func(_ context.Context, c *kopf.Change) error {
		c.Patch().SetAnnotation("never-again", "yes")
		return kopf.Permanent(errors.New("never call it again"))
	}), kopf.ID("update"), kopf.Annotations(map[string]kopf.Matcher{"never-again": kopf.Absent()}))
	b.OnUpdate(examples, succeed)
	b.start()
	obj := b.withFieldOne()
	for _, value := range []string{"2", "3"} {
		b.setField(obj, value)
		b.Expect(b.expectHandled(obj)).To(testenv.HaveAnnotation("never-again", "yes"))
	}
	b.Expect(b.calls.All()).To(gomega.Equal(attempts("update", 1)))
}

func TestHandlersCanUseTheirOwnFinalizers(t *testing.T) {
	t.Parallel()
	const own = "example.com/own"
	b := newBench(t)
	b.OnCreate(examples, b.noted("create", func(_ context.Context, c *kopf.Change) error {
		c.Patch().Apply(func(obj *unstructured.Unstructured) error {
			obj.SetFinalizers(append(obj.GetFinalizers(), own))
			return nil
		})
		return nil
	}), kopf.ID("create"))
	b.OnDelete(examples, b.noted("delete", func(_ context.Context, c *kopf.Change) error {
		c.Patch().Apply(func(obj *unstructured.Unstructured) error {
			var left []string
			for _, name := range obj.GetFinalizers() {
				if name != own {
					left = append(left, name)
				}
			}
			obj.SetFinalizers(left)
			return nil
		})
		return nil
	}), kopf.ID("delete"))
	b.start()
	obj := b.create("one", nil)
	b.Eventually(cluster.Current(obj)).Should(gomega.SatisfyAll(testenv.HaveFinalizer(own), testenv.HaveFinalizer(finalizer)))
	b.expectHandled(obj)
	b.remove(obj)
	b.expectGone(obj)
	b.expectRest()
	b.Expect(b.calls.All()).To(gomega.Equal([]string{"create 0", "delete 0"}))
}
