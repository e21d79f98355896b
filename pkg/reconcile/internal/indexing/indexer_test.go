package indexing_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/internal/handlertest"
	"github.com/kopf-go/kopf/pkg/model/index"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/selector"
)

func TestIndexFollowsObjects(t *testing.T) {
	inBubble(t, func(w *world) {
		w.change("one", "a")
		w.change("two", "b")
		w.has("one=a", "two=b")
		w.change("one", "c")
		w.has("one=c", "two=b")
		w.change("one", "") // the function returns nothing
		w.has("one=c", "two=b")
		w.remove("one")
		w.has("two=b")
		w.remove("one") // and does not exist at all
		w.has("two=b")
		w.logged()
	})
}

func TestObjectsThatStopMatchingAreRemoved(t *testing.T) {
	filters := map[string]handler.Matcher{"tier": handler.Equal("web")}
	inBubble(t, func(w *world) {
		w.change("one", "a")
		w.has()
		w.change("one", "b", "tier=web")
		w.has("one=b")
		w.change("one", "c", "tier=db")
		w.has()
		w.change("one", "d", "tier=web")
		w.has("one=d")
		w.called("0s one b #0 after 0s", "0s one d #0 after 0s")
	}, handler.Labels(filters))
}

func TestIgnoredErrorsKeepTheValues(t *testing.T) {
	inBubble(t, func(w *world) {
		w.change("one", "a")
		w.answers(func(*handler.Call) error { return errBroken })
		w.change("one", "b")
		w.change("two", "c")
		w.has("one=a")
		w.logged(`"The object could not be indexed; its values in the index stay." "error"="broken" "object"="one" "handler"="values"`, `"object"="two"`)

		w.answers(func(*handler.Call) error { panic("a mistake") })
		w.change("one", "d")
		w.has("one=a")
		w.logged(`"error"="panic: a mistake" "object"="one" "handler"="values" "stack"="github.com/kopf-go/kopf/pkg/reconcile/internal/indexing_test.`)

		// The object is not excluded, and the attempts are not counted.
		w.answers(func(*handler.Call) error { return nil })
		w.forget()
		pass(time.Hour)
		w.change("one", "e")
		w.has("one=e")
		w.called("1h0m0s one e #0 after 0s")
	})
}

func TestPermanentErrorsExcludeTheObject(t *testing.T) {
	tests := map[string]struct {
		err     error
		options []handler.Option
	}{
		"a permanent error":                      {handler.Permanent(errBroken), nil},
		"under ErrorsPermanent":                  {errBroken, []handler.Option{handler.Errors(handler.ErrorsPermanent)}},
		"no attempts left":                       {handler.Temporary(errBroken, time.Minute), []handler.Option{handler.Retries(1)}},
		"a delay beyond the timeout":             {handler.Temporary(errBroken, time.Minute), []handler.Option{handler.Timeout(time.Minute)}},
		"no attempts left under ErrorsTemporary": {errBroken, []handler.Option{handler.Errors(handler.ErrorsTemporary), handler.Retries(1)}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(w *world) {
				w.change("one", "a")
				w.answers(func(*handler.Call) error { return test.err })
				w.change("one", "b")
				w.has()
				w.logged("it is excluded from the index.")
				w.answers(func(*handler.Call) error { return nil })
				w.forget()
				w.change("one", "c")
				pass(time.Hour)
				w.change("two", "d")
				w.has("two=d")
				w.called("1h0m0s two d #0 after 0s")

				// Another object with the same name is indexed.
				w.remove("one")
				w.change("one", "e", "uid-2")
				w.has("one=e", "two=d")
			}, test.options...)
		})
	}
}

// The deletion was missed, because the watch was interrupted.
func TestReplacementOfAnExcludedObjectIsIndexed(t *testing.T) {
	for name, err := range map[string]error{"for good": handler.Permanent(errBroken), "for now": handler.Temporary(errBroken, time.Minute)} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(w *world) {
				w.answers(func(*handler.Call) error { return err })
				w.change("one", "a")
				w.answers(func(*handler.Call) error { return nil })
				w.forget()
				w.change("one", "b", "uid-2")
				w.has("one=b")
				pass(time.Hour)
				w.called("0s one b #0 after 0s")
			})
		})
	}
}

func TestFailingFilterIsAnErrorOfTheFunction(t *testing.T) {
	inBubble(t, func(w *world) {
		w.change("one", "a")
		w.change("one", "panic")
		w.has("one=a")
		w.called("0s one a #0 after 0s")
		w.logged(`"error"="panic: a mistake"`)
	}, handlertest.When(func(a *handler.Call) bool {
		if value, _ := a.Body().Spec().String("value"); value == "panic" {
			panic("a mistake")
		}
		return true
	}))
}

func TestInvalidValuesAreAnErrorOfTheFunction(t *testing.T) {
	inBubble(t, func(w *world) {
		numbers := index.New[float64, string]()
		results := map[string]any{"nan": map[float64]string{math.NaN(): "b"}, "type": map[string]string{}, "good": map[float64]string{1: "a"}}
		d, err := handler.Index(selector.New("pods"), handlertest.Filling(numbers, func(_ context.Context, i *handler.Call) (any, error) {
			value, _ := i.Body().Spec().String("value")
			return results[value], nil
		}), handler.ID("numbers"), handler.Errors(handler.ErrorsPermanent))
		if err != nil {
			t.Fatal(err)
		}
		w.indexer = w.start(d)
		defer w.indexer.Close()
		w.change("one", "good")
		w.change("two", "nan")
		w.change("three", "type")
		w.logged("does not equal itself", "the values have the type map[string]string")
		if numbers.Len() != 1 || !numbers.Has(1) {
			t.Errorf("got %d keys", numbers.Len())
		}
	})
}

func TestFailingIndexDoesNotAffectOthers(t *testing.T) {
	inBubble(t, func(w *world) {
		other := index.New[string, string]()
		broken, err := handler.Index(selector.New("pods"), handlertest.Filling(w.index, w.value), handler.ID("broken"))
		if err != nil {
			t.Fatal(err)
		}
		fine, err := handler.Index(selector.New("pods"), handlertest.Filling(other, func(_ context.Context, i *handler.Call) (any, error) {
			return map[string]string{i.Name(): ""}, nil
		}), handler.ID("fine"))
		if err != nil {
			t.Fatal(err)
		}
		w.indexer = w.start(broken, fine)
		defer w.indexer.Close()
		w.answers(func(*handler.Call) error { return handler.Permanent(errBroken) })
		w.change("one", "a")
		w.has()
		if !other.Has("one") {
			t.Error("the other index lacks the object")
		}
		w.remove("one")
		if other.Len() != 0 {
			t.Error("the other index still has the object")
		}
	})
}

func TestOtherHandlersAreIgnored(t *testing.T) {
	inBubble(t, func(w *world) {
		d, err := handler.Watch(selector.New("pods"), handlertest.Function(func(context.Context, *handler.Call) error { return nil }), handler.ID("event"))
		if err != nil {
			t.Fatal(err)
		}
		x := w.start(d)
		x.Update(w.ctx, owner("one"), object.NewBody(map[string]any{}))
		x.Remove(owner("one"))
		x.Close()
	})
}

func TestObjectsThatDoNotFitAreLeftOut(t *testing.T) {
	inBubble(t, func(w *world) {
		var noted []string
		w.indexer.Misfit = func(owner object.Key, d *handler.Declaration, misfit *handler.MisfitError) {
			noted = append(noted, fmt.Sprint(owner.Name, " ", d.ID, " ", misfit != nil))
		}
		w.change("one", "a")
		w.answers(func(*handler.Call) error { return &handler.MisfitError{Type: "*v1.Pod", Err: errBroken} })
		w.change("one", "b")
		w.has()
		w.answers(func(*handler.Call) error { return nil })
		w.change("one", "c") // no attempt has failed
		w.has("one=c")
		w.logged()
		w.called("0s one a #0 after 0s", "0s one b #0 after 0s", "0s one c #0 after 0s")
		if want := []string{"one values false", "one values true", "one values false"}; !slices.Equal(noted, want) {
			t.Errorf("got %q", noted)
		}
	})
}
