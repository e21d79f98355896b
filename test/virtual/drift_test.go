package virtual

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/kopftest"
)

// bench is the environment of a test of drift: an object with a config map, and what a function
// of OnDrift is told and answers.
type bench struct {
	*kopftest.Harness
	t      *testing.T
	told   []string
	answer func(*kopf.Drift) (kopf.Resolution, error)
}

// withDrift runs a test with a config map that has been applied, and a function of OnDrift.
func withDrift(t *testing.T, test func(*bench)) {
	t.Helper()
	b := &bench{answer: func(*kopf.Drift) (kopf.Resolution, error) { return kopf.Resolution{}, nil }}
	withOperator(t, func(r *kopf.Registry) {
		r.Ensure(examples, theme, kopf.ID("children"), kopf.Backoff(10*time.Second))
		r.OnDrift(examples, func(_ context.Context, c *kopf.Drift) (kopf.Resolution, error) {
			b.told = append(b.told, describe(c))
			return b.answer(c)
		}, kopf.ID("drift"))
	}, func(t *testing.T, h *kopftest.Harness) {
		b.Harness, b.t = h, t
		h.Create(newExample())
		h.Advance(time.Minute)
		test(b)
	})
}

// describe returns what a function is told.
func describe(c *kopf.Drift) string {
	if c.Deleted() {
		return fmt.Sprintf("%s %s: deleted", c.EnsuredBy(), c.Key())
	}
	var fields []string
	for _, f := range c.Fields() {
		fields = append(fields, fmt.Sprintf("%s is %v instead of %v", f, f.Found.Any(), f.Wanted.Any()))
	}
	return fmt.Sprintf("%s %s: %s", c.EnsuredBy(), c.Key(), strings.Join(fields, ", "))
}

// change changes the config map as another client does.
func (b *bench) change(merge string) {
	b.t.Helper()
	if err := b.Client().Patch(b.t.Context(), newTheme(), client.RawPatch(types.MergePatchType, []byte(merge)), client.FieldOwner("kubectl-edit")); err != nil {
		b.t.Fatal(err)
	}
	b.Advance(time.Minute)
}

// expectTold compares what the function was told since the last call.
func (b *bench) expectTold(want ...string) {
	b.t.Helper()
	if fmt.Sprint(b.told) != fmt.Sprint(want) {
		b.t.Errorf("the function was told %q, want %q", b.told, want)
	}
	b.told = nil
}

// expectColor compares the color in the config map.
func (b *bench) expectColor(want string) {
	b.t.Helper()
	found := newTheme()
	if b.Get(found); found.Data["color"] != want {
		b.t.Errorf("the color is %q, want %q", found.Data["color"], want)
	}
}

// writesOf counts the writes during a part of a test.
func (b *bench) writesOf(part func()) int {
	before := len(b.Writes())
	part()
	return len(b.Writes()) - before
}

const red = "children ConfigMap default/theme: data.color (by kubectl-edit) is red instead of blue"

func accept(*kopf.Drift) (kopf.Resolution, error) { return kopf.AcceptDrift(), nil }

func TestDriftIsToldAndRestored(t *testing.T) {
	withDrift(t, func(b *bench) {
		var since time.Time
		b.answer = func(c *kopf.Drift) (kopf.Resolution, error) {
			field, _ := c.Field("data.color")
			since = field.Since
			return kopf.RestoreDrift(), nil
		}
		before := time.Now()
		if writes := b.writesOf(func() { b.change(`{"data": {"color": "red", "more": "x"}}`) }); writes != 1 {
			b.t.Errorf("got %d writes", writes)
		}
		b.expectTold(red)
		b.expectColor("blue")
		if !since.Equal(before.Truncate(time.Second)) {
			b.t.Errorf("it has drifted since %v, not %v", since, before)
		}
		calls := b.Calls("drift")
		if len(calls) != 1 || calls[0].Child != "configmaps/theme" || calls[0].Kind != "drift" || calls[0].Attempt != 1 || calls[0].Object != "default/one" {
			b.t.Errorf("got the calls %+v", calls)
		}
		b.change(`{"data": {"color": null}}`)
		b.expectTold("children ConfigMap default/theme: data.color (removed) is <nil> instead of blue")
		b.expectColor("blue")
	})
}

func TestAcceptedFieldIsLeftUntilSomethingElseIsWanted(t *testing.T) {
	withDrift(t, func(b *bench) {
		b.answer = accept
		if writes := b.writesOf(func() { b.change(`{"data": {"color": "red"}}`) }); writes != 1 {
			b.t.Errorf("got %d writes", writes)
		}
		b.expectTold(red)
		b.expectColor("red")

		if writes := b.writesOf(func() { b.change(`{"data": {"color": "pink"}}`) }); writes != 0 {
			b.t.Errorf("another value of the field: %d writes", writes)
		}
		if writes := b.writesOf(b.Restart); writes != 0 {
			b.t.Errorf("a restart: %d writes", writes)
		}
		b.Advance(time.Minute)
		b.Patch(newExample(), `{"spec": {"size": 4}}`)
		b.Advance(time.Minute)
		b.expectColor("pink")
		b.expectTold()

		b.Patch(newExample(), `{"spec": {"color": "green"}}`)
		b.Advance(time.Minute)
		b.expectColor("green")
		b.expectTold()
		b.change(`{"data": {"color": "red"}}`)
		b.expectTold("children ConfigMap default/theme: data.color (by kubectl-edit) is red instead of green")
	})
}

func TestOneFieldIsAcceptedAndAnotherOneRestored(t *testing.T) {
	withDrift(t, func(b *bench) {
		b.answer = func(*kopf.Drift) (kopf.Resolution, error) { return kopf.AcceptFields("data.color"), nil }
		if writes := b.writesOf(func() { b.change(`{"data": {"color": "red", "font": "mono"}}`) }); writes != 1 {
			b.t.Errorf("got %d writes", writes)
		}
		b.expectColor("red")
		found := newTheme()
		if b.Get(found); found.Data["font"] != "serif" {
			b.t.Errorf("got %v", found.Data)
		}
		b.change(`{"data": {"font": "mono"}}`) // the accepted field has not drifted
		found = newTheme()
		if b.Get(found); found.Data["font"] != "serif" {
			b.t.Errorf("got %v", found.Data)
		}
		b.Delete(newTheme())
		b.Advance(time.Minute)
		b.expectColor("blue")

		b.told = nil
		b.answer = func(*kopf.Drift) (kopf.Resolution, error) {
			return kopf.AcceptDrift(), kopf.Permanent(errors.New("never"))
		}
		b.change(`{"data": {"font": "mono"}}`)
		if len(b.told) != 1 {
			b.t.Errorf("a permanent error is repeated: %q", b.told)
		}
		found = newTheme()
		if b.Get(found); found.Data["font"] != "mono" {
			b.t.Errorf("it is restored although the function has failed: %v", found.Data)
		}
	})
}

// What changes while the function decides is another question.
func TestChangeDuringADecisionIsNotLost(t *testing.T) {
	withDrift(t, func(b *bench) {
		b.answer = func(*kopf.Drift) (kopf.Resolution, error) {
			if len(b.told) == 1 {
				err := b.Client().Patch(b.t.Context(), newTheme(), client.RawPatch(types.MergePatchType, []byte(`{"data": {"font": "mono"}}`)), client.FieldOwner("other"))
				return kopf.AcceptDrift(), err
			}
			return kopf.AcceptDrift(), nil
		}
		b.change(`{"data": {"color": "red"}}`)
		b.expectTold(red, red+", data.font (by other) is mono instead of serif")
		b.expectColor("red")
		found := newTheme()
		if b.Get(found); found.Data["font"] != "mono" {
			b.t.Errorf("got %v", found.Data)
		}
	})
}

// Removing the annotation of the operator takes back what was accepted.
func TestAcceptedFieldIsAskedAboutAgainOnRequest(t *testing.T) {
	withDrift(t, func(b *bench) {
		b.answer = accept
		b.change(`{"data": {"color": "red"}}`)
		b.told = nil
		b.answer = func(*kopf.Drift) (kopf.Resolution, error) { return kopf.RestoreDrift(), nil }
		b.change(`{"metadata": {"annotations": {"kopf.zalando.org/kopf-ensured": null}}}`)
		b.expectTold(red)
		b.expectColor("blue")
	})
}

// Nothing is restored until the function has decided, not even together with something else.
func TestFailedDecisionIsRetried(t *testing.T) {
	withDrift(t, func(b *bench) {
		failing := true
		b.answer = func(*kopf.Drift) (kopf.Resolution, error) {
			if failing {
				return kopf.AcceptDrift(), errors.New("the ticket system is down")
			}
			return kopf.RestoreDrift(), nil
		}
		b.change(`{"data": {"color": "red"}}`)
		b.expectColor("red")
		if attempts := b.Calls("drift"); len(attempts) < 3 || attempts[2].Attempt != 3 {
			b.t.Errorf("got the calls %v", attempts)
		}
		b.Patch(newExample(), `{"spec": {"size": 5}}`)
		b.Advance(time.Minute)
		b.expectColor("red")
		b.Restart()
		b.Advance(time.Minute)
		b.expectColor("red")
		failing = false
		b.Advance(time.Minute)
		b.expectColor("blue")
		one := newExample()
		b.Get(one)
		for key := range one.GetAnnotations() {
			if strings.Contains(key, "restore") {
				b.t.Errorf("a record is left: %s", key)
			}
		}
	})
}

// Another field is wanted otherwise while the decision about the first one fails.
func TestUndecidedFieldIsNotRestoredTogetherWithAnother(t *testing.T) {
	b := &bench{t: t}
	failing := true
	withOperator(t, func(r *kopf.Registry) {
		r.Ensure(examples, func(_ context.Context, c *kopf.Change) ([]client.Object, error) {
			size, _ := c.Spec().Int64("size")
			wanted := newTheme()
			wanted.Data = map[string]string{"color": "blue", "size": fmt.Sprint(size)}
			return []client.Object{wanted}, nil
		}, kopf.ID("children"), kopf.Backoff(time.Second))
		r.OnDrift(examples, func(context.Context, *kopf.Drift) (kopf.Resolution, error) {
			if failing {
				return kopf.Resolution{}, errors.New("not yet")
			}
			return kopf.AcceptDrift(), nil
		}, kopf.ID("drift"))
	}, func(t *testing.T, h *kopftest.Harness) {
		b.Harness, b.t = h, t
		h.Create(newExample())
		h.Advance(time.Minute)
		b.change(`{"data": {"color": "red"}}`)
		b.Patch(newExample(), `{"spec": {"size": 5}}`)
		b.Advance(time.Minute)
		b.expectColor("red")
		failing = false
		b.Advance(time.Minute)
		b.expectColor("red")
		found := newTheme()
		if b.Get(found); found.Data["size"] != "5" {
			t.Errorf("got %v", found.Data)
		}
	})
}

func TestDeletionOfAChildIsTold(t *testing.T) {
	withDrift(t, func(b *bench) {
		b.Delete(newTheme())
		b.Advance(time.Minute)
		b.expectTold("children ConfigMap default/theme: deleted")
		b.expectColor("blue")

		b.answer = accept
		b.Delete(newTheme())
		b.Advance(time.Minute)
		b.expectTold("children ConfigMap default/theme: deleted")
		if b.Exists(newTheme()) {
			b.t.Error("it is created again although the function has failed")
		}
		b.Patch(newExample(), `{"spec": {"color": "green"}}`) // the mistake is still there
		b.Advance(time.Minute)
		b.answer = func(*kopf.Drift) (kopf.Resolution, error) { return kopf.RestoreDrift(), nil }
		b.Patch(newExample(), `{"spec": {"color": "red"}}`)
		b.Advance(time.Minute)
		b.expectColor("red")
	})
}

// What the operator deletes itself, and what happens while none is running, is not told.
func TestOnlyDeletionsByOthersAreTold(t *testing.T) {
	withDrift(t, func(b *bench) {
		b.Patch(newExample(), `{"spec": {"color": ""}}`)
		b.Advance(time.Minute)
		b.Stop()
		b.Delete(newTheme())
		b.Start()
		b.Advance(time.Minute)
		if !b.Exists(newTheme()) {
			b.t.Error("it is missing")
		}
		b.expectTold()
	})
}

func TestOwnMarksAreRestoredWithoutAQuestion(t *testing.T) {
	withDrift(t, func(b *bench) {
		b.answer = accept
		b.change(`{"metadata": {"labels": null}}`)
		b.change(`{"metadata": {"ownerReferences": null}}`)
		b.change(`{"metadata": {"annotations": null}}`)
		b.expectTold()
		found := newTheme()
		b.Get(found)
		if len(found.Labels) != 1 || len(found.OwnerReferences) != 1 || len(found.Annotations) != 1 {
			b.t.Errorf("got %+v", found.ObjectMeta)
		}
		b.change(`{"metadata": {"labels": null}, "data": {"color": "red"}}`)
		b.expectTold(red)
		b.expectColor("red")
	})
}

// Both functions are called, and a field is left if one of them accepts it. The id of the handler
// that returns the child decides who is asked.
func TestSeveralFunctionsForSeveralHandlers(t *testing.T) {
	var told []string
	answering := func(id string, resolution kopf.Resolution) func(context.Context, *kopf.Drift) (kopf.Resolution, error) {
		return func(_ context.Context, c *kopf.Drift) (kopf.Resolution, error) {
			told = append(told, id+" about "+c.EnsuredBy())
			return resolution, nil
		}
	}
	withOperator(t, func(r *kopf.Registry) {
		r.Ensure(examples, theme, kopf.ID("themes"))
		r.Ensure(examples, func(context.Context, *kopf.Change) ([]client.Object, error) {
			other := newTheme()
			other.Name, other.Data = "other", map[string]string{"color": "black"}
			return []client.Object{other}, nil
		}, kopf.ID("others"))
		r.OnDrift(examples, answering("all", kopf.RestoreDrift()), kopf.ID("all"))
		r.OnDrift(examples, answering("some", kopf.AcceptDrift()), kopf.ID("some"), kopf.EnsuredBy("others"))
		r.OnDrift(examples, answering("none", kopf.AcceptDrift()), kopf.ID("none"), kopf.Labels(map[string]kopf.Matcher{"no": kopf.Present()}))
	}, func(t *testing.T, h *kopftest.Harness) {
		h.Create(newExample())
		h.Advance(time.Minute)
		other := newTheme()
		other.Name = "other"
		for _, child := range []client.Object{newTheme(), other} {
			h.Patch(child, `{"data": {"color": "red"}}`)
			h.Advance(time.Minute)
		}
		if want := "[all about themes all about others some about others]"; fmt.Sprint(told) != want {
			t.Errorf("got %v, want %s", told, want)
		}
		h.Get(other)
		found := newTheme()
		if h.Get(found); found.Data["color"] != "blue" || other.Data["color"] != "red" {
			t.Errorf("got %v and %v", found.Data, other.Data)
		}
	})
}

// The patch of the function belongs to the parent, and is written with the record of the attempt.
func TestPatchOfADecisionIsWritten(t *testing.T) {
	withDrift(t, func(b *bench) {
		b.answer = func(c *kopf.Drift) (kopf.Resolution, error) {
			c.Patch().Set("yes", "status", "drifted")
			return kopf.RestoreDrift(), nil
		}
		b.change(`{"data": {"color": "red"}}`)
		one := newExample()
		b.Get(one)
		if status, _ := one.Object["status"].(map[string]any); status["drifted"] != "yes" {
			b.t.Errorf("got %v", one.Object["status"])
		}
	})
}

func TestTypedParentThatDoesNotFit(t *testing.T) {
	var told int
	withOperator(t, func(r *kopf.Registry) {
		r.Ensure(kopf.Resource("v1", "secrets"), theme, kopf.ID("children"))
		kopf.For[*corev1.Secret](r).OnDrift(func(_ context.Context, secret *corev1.Secret, c *kopf.Drift) (kopf.Resolution, error) {
			if secret.Name == "one" {
				told++
			}
			return kopf.AcceptDrift(), nil
		}, kopf.ID("drift"))
	}, func(t *testing.T, h *kopftest.Harness) {
		h.Create(kopftest.Object(`{apiVersion: v1, kind: Secret, metadata: {namespace: default, name: one}}`))
		h.Advance(time.Minute)
		h.Patch(newTheme(), `{"data": {"font": "mono"}}`)
		h.Advance(time.Minute)
		found := newTheme()
		if h.Get(found); told != 1 || found.Data["font"] != "mono" {
			t.Errorf("got %v after %d calls", found.Data, told)
		}
	})
}

// sized is a typed KopfExample with a number.
type sized struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Size int `json:"size"`
	} `json:"spec"`
}

func (s *sized) DeepCopyObject() runtime.Object {
	c := *s
	c.ObjectMeta = *s.ObjectMeta.DeepCopy()
	return &c
}

// As long as the parent does not fit the type, nothing is restored, and nothing is an attempt.
func TestDriftWaitsUntilTheParentFitsItsType(t *testing.T) {
	scheme := runtime.NewScheme()
	_ = corev1.AddToScheme(scheme)
	scheme.AddKnownTypeWithName(schema.GroupVersionKind{Group: "kopf.dev", Version: "v1", Kind: "KopfExample"}, &sized{})
	synctest.Test(t, func(t *testing.T) {
		told := 0
		h := kopftest.New(t, func() *kopf.Registry {
			r := kopf.NewRegistry()
			r.Ensure(examples, theme, kopf.ID("children"))
			kopf.For[*sized](r).OnDrift(func(_ context.Context, sized *sized, c *kopf.Drift) (kopf.Resolution, error) {
				told += sized.Spec.Size
				return kopf.RestoreDrift(), nil
			}, kopf.ID("drift"))
			return r
		}, kopftest.CRDs(definitions), kopftest.Settings(func(s *kopf.Settings) { s.Name = "example.com" }), kopftest.Scheme(scheme))
		one := newExample()
		_ = unstructured.SetNestedField(one.Object, "big", "spec", "size")
		h.Create(one)
		h.Advance(time.Minute)
		h.Patch(newTheme(), `{"data": {"color": "red"}}`)
		h.Advance(time.Hour)
		found := newTheme()
		if h.Get(found); found.Data["color"] != "red" || told != 0 || len(h.Calls("drift")) != 1 {
			t.Errorf("got %v after the calls %v", found.Data, h.Calls("drift"))
		}
		if !slices.ContainsFunc(h.Events(), func(e corev1.Event) bool {
			return e.Reason == "ObjectMisfit" && strings.Contains(e.Message, "does not fit the Go type *virtual.sized in spec.size")
		}) {
			t.Errorf("got the events %v", h.Events())
		}
		h.Patch(one, `{"spec": {"size": 7}}`)
		h.Advance(time.Minute)
		if h.Get(found); found.Data["color"] != "blue" || told != 7 {
			t.Errorf("got %v, and %d", found.Data, told)
		}
	})
}

func TestMistakesInDeclarationsOfDriftAreFoundAtTheStart(t *testing.T) {
	ignore := func(context.Context, *kopf.Drift) (kopf.Resolution, error) { return kopf.RestoreDrift(), nil }
	for name, test := range map[string]struct {
		declare func(*kopf.Registry)
		want    string
	}{
		"without an Ensure": {func(r *kopf.Registry) {
			r.OnDrift(examples, ignore, kopf.ID("drift"))
		}, "kopf.Ensure, which is not declared"},
		"with an unknown id": {func(r *kopf.Registry) {
			r.Ensure(examples, theme, kopf.ID("children"))
			r.OnDrift(examples, ignore, kopf.ID("drift"), kopf.EnsuredBy("childs"))
		}, `kopf.EnsuredBy("childs"), but no kopf.Ensure has this id: there are children`},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := kopf.NewRegistry()
				test.declare(r)
				o := kopf.Options{Registry: r, Config: kopftest.NewAPIServer(t).Config()}
				o.Settings.Name, o.Settings.Peering.Standalone = "example.com", true
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				if err := kopf.Run(ctx, o); err == nil || !strings.Contains(err.Error(), test.want) {
					t.Errorf("got %v", err)
				}
			})
		})
	}
}

// The operator is killed before and after each write, also of the children; writes fail, and
// answers are lost. Each function is told again what was not decided or not stored.
func TestSweepOfDecisions(t *testing.T) {
	kopftest.Sweep(t, func(t *testing.T, fault kopftest.Option) {
		h := kopftest.New(t, func() *kopf.Registry {
			r := kopf.NewRegistry()
			r.Ensure(examples, theme, kopf.ID("children"), kopf.Backoff(time.Second))
			r.OnDrift(examples, func(_ context.Context, c *kopf.Drift) (kopf.Resolution, error) {
				if field, drifted := c.Field("data.color"); drifted {
					return kopf.AcceptFields(field.Path), nil
				}
				return kopf.RestoreDrift(), nil
			}, kopf.ID("drift"))
			return r
		}, fault, kopftest.CRDs(definitions), kopftest.Settings(func(s *kopf.Settings) { s.Name = "example.com" }))
		one := newExample()
		h.Create(one)
		h.Advance(2 * time.Minute)
		h.Patch(newTheme(), `{"data": {"color": "red", "font": "mono"}}`)
		h.Advance(2 * time.Minute)
		found := newTheme()
		if h.Get(found); found.Data["color"] != "red" || found.Data["font"] != "serif" {
			t.Errorf("after the drift: %v", found.Data)
		}
		h.Patch(one, `{"spec": {"color": "green"}}`)
		h.Advance(2 * time.Minute)
		if h.Get(found); found.Data["color"] != "green" {
			t.Errorf("after the change: %v", found.Data)
		}
		h.Delete(newTheme())
		h.Advance(2 * time.Minute)
		if !h.Exists(newTheme()) {
			t.Error("the theme is missing")
		}
	})
}
