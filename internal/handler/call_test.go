package handler_test

import (
	"context"
	"errors"
	"io"
	"runtime"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/pkg/model/cause"
	"github.com/kopf-go/kopf/pkg/model/memo"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/patch"
	"github.com/kopf-go/kopf/pkg/model/selector"
)

func TestACallPresentsItsContext(t *testing.T) {
	d := &handler.Declaration{Param: "p"}
	c := handler.NewCall(d, subject(), handler.Attempt{})
	if c.Name() != "one" || c.Namespace() != "ns" || c.Resource().Plural != "" || c.Memo() != nil || c.Param() != "p" || c.Result() != nil {
		t.Errorf("got %+v", c)
	}
	if c.Reason() != "" || c.Transition().Diff != nil || c.OldEssence() != nil || c.Misfit() != nil || c.IsUntyped() {
		t.Errorf("got the change %s %v", c.Reason(), c.Transition())
	}
	values := &memo.Values{}
	resource := selector.Resource{Plural: "things"}
	c.Context.Memo, c.Context.Resource = func() *memo.Values { return values }, &resource
	c.SetResult("r")
	if c.Memo() != values || c.Resource().Plural != "things" || c.Result() != "r" {
		t.Errorf("got %+v", c)
	}
}

// The body of a subresource has no name, and that of an object to create may have only a part of it.
func TestAReviewNamesTheObjectThatItsBodyDoesNotName(t *testing.T) {
	review := &handler.Review{Operation: admissionv1.Create, New: object.NewBody(m{"spec": m{}}), Name: "two", Namespace: "elsewhere"}
	c := handler.NewCall(&handler.Declaration{Kind: handler.OnValidate}, handler.CallContext{Body: review.New}, handler.Attempt{})
	c.Review = review
	if c.Name() != "two" || c.Namespace() != "elsewhere" || c.Reason() != cause.Create || len(c.Transition().Diff) == 0 {
		t.Errorf("got %s/%s, %s %v", c.Namespace(), c.Name(), c.Reason(), c.Transition().Diff)
	}
	c.Context.Body = subject().Body
	if c.Name() != "one" || c.Namespace() != "ns" {
		t.Errorf("got %s/%s", c.Namespace(), c.Name())
	}
}

// subhandlers records what a call registers.
type subhandlers struct {
	registered []string
	err        error
}

func (s *subhandlers) Register(d *handler.Declaration, err error) {
	s.registered, s.err = append(s.registered, d.ID), err
}

func (s *subhandlers) Execute(context.Context) error { return s.err }

func TestACallOfAChangeHasSubhandlersAndEssences(t *testing.T) {
	d, err := handler.Update(kex, change(doNothing), handler.ID("a"))
	declared(t, d, err)
	s := &subhandlers{}
	old := object.Essence{"spec": m{"size": int64(1)}}
	c := handler.NewChange(d, subject(), handler.Attempt{}, s, cause.Update, func() *handler.Cause { return occasion(cause.Update, old, object.Essence{"spec": m{}}) })
	c.Register(d, io.EOF)
	if err := c.Execute(t.Context()); !errors.Is(err, io.EOF) || len(s.registered) != 1 {
		t.Errorf("got %v, %q", err, s.registered)
	}
	if !object.Equal(c.OldEssence(), old) {
		t.Errorf("got %v", c.OldEssence())
	}
}

func TestAnEssenceOfHashesIsUnknown(t *testing.T) {
	d, err := handler.Update(kex, change(doNothing), handler.ID("a"))
	declared(t, d, err)
	c := changing(d, occasion(cause.Update, object.Essence{"spec": hashed("x")}, object.Essence{}))
	if got := c.OldEssence(); got != nil {
		t.Errorf("got %v", got)
	}
}

func TestConditionsAreOfTheGenerationThatTheHandlerHasSeen(t *testing.T) {
	ready := metav1.Condition{Type: "Ready", Status: metav1.ConditionTrue, Reason: "Done"}
	older := ready
	older.ObservedGeneration = 3
	for name, test := range map[string]struct {
		condition metav1.Condition
		status    any
		want      int64 // 0: a permanent error
	}{
		"the current one":            {ready, m{}, 7},
		"another one":                {older, m{}, 3},
		"a condition without a type": {metav1.Condition{}, m{}, 0},
		"a status that has no room":  {ready, "text", 0},
	} {
		c := handler.NewCall(&handler.Declaration{}, handler.CallContext{Body: object.NewBody(m{"metadata": m{"generation": int64(7)}}), Patch: &patch.Patch{}}, handler.Attempt{})
		c.SetCondition(test.condition)
		merge, err := c.Context.Patch.Resolve(m{"status": test.status})
		var got []any
		if err == nil {
			got, _, _ = unstructured.NestedSlice(merge, "status", "conditions")
		}
		switch {
		case test.want == 0 && !handler.IsPermanent(err), test.want != 0 && (err != nil || len(got) != 1):
			t.Errorf("%s: got %v, %v", name, merge, err)
		case test.want != 0 && got[0].(m)["observedGeneration"] != test.want:
			t.Errorf("%s: got %v", name, got)
		}
	}
}

func TestACallAboutAChildPresentsIt(t *testing.T) {
	var reason cause.Reason
	d, err := handler.Child(kex, kex, functionOf(func(_ context.Context, c *handler.Call) error { reason = c.Reason(); return nil }), handler.ID("a"))
	d = handler.ForCall(declared(t, d, err), "b", func() handler.ChildCall { return handler.ChildCall{Reason: cause.Delete} })
	if _, err := d.Call(t.Context(), handler.NewCall(d, subject(), handler.Attempt{})); err != nil || reason != cause.Delete {
		t.Errorf("got %s, %v", reason, err)
	}
}

// unreadable is an error whose text cannot be read.
type unreadable struct{ reason *string }

func (e *unreadable) Error() string { return *e.reason }

// A handler can return, fail, panic, or end its goroutine, whether or not it is observed.
func TestCallsEndWithAnError(t *testing.T) {
	for name, test := range map[string]struct {
		fn     func() error
		want   error // nil: none
		panics bool
	}{
		"it returns":                   {fn: func() error { return nil }},
		"it fails":                     {fn: func() error { return io.EOF }, want: io.EOF},
		"its error cannot be read":     {fn: func() error { return &unreadable{} }, panics: true},
		"it panics":                    {fn: func() error { panic("oops") }, panics: true},
		"it ends its goroutine":        {fn: func() error { runtime.Goexit(); return nil }, want: handler.ErrExited},
		"it says that it has ended it": {fn: func() error { return handler.ErrExited }, want: handler.ErrExited},
	} {
		t.Run(name, func(t *testing.T) {
			expect := func(where string, err error) {
				t.Helper()
				if panicked := errors.As(err, new(*handler.PanicError)); panicked != test.panics || !test.panics && !errors.Is(err, test.want) {
					t.Errorf("%s: got %v", where, err)
				}
			}
			d, err := handler.Create(kex, change(func(context.Context, *handler.Call) error { return test.fn() }), handler.ID("a"))
			declared(t, d, err)
			for where, ctx := range map[string]context.Context{
				"called":   t.Context(),
				"observed": handler.WithObserver(t.Context(), ends(func(err error) { expect("the observer", err) })),
			} {
				_, err := d.CallIsolated(ctx, changing(d, &handler.Cause{}))
				expect(where, err)
			}
			if name == "its error cannot be read" {
				expect("readable", handler.Readable(test.fn()))
				return
			}
			expect("recovered", handler.WithRecover(test.fn))
			select {
			case err := <-handler.Start(test.fn):
				expect("started", err)
			case <-time.After(time.Minute):
				t.Error("it does not end")
			}
		})
	}
	if err := handler.Readable(nil); err != nil {
		t.Errorf("got %v", err)
	}
	if err := handler.Readable(io.EOF); err != io.EOF { //nolint:errorlint // the very same
		t.Errorf("got %v", err)
	}
}

// ends is an observer that looks at the ends of calls only.
type ends func(error)

func (e ends) Begin(*handler.Call) func(error) { return e }

func (ends) Fail(*handler.Call, error) {}

func TestObservedHandlersAreCalledForMisfits(t *testing.T) {
	untyped := false
	look := func(_ context.Context, c *handler.Call) error { untyped = c.IsUntyped(); return nil }
	d, err := handler.Delete(kex, typedOf(&corev1.Pod{}, look), handler.OnMisfit(handler.CallUntyped), handler.ID("look"))
	c := handler.NewChange(declared(t, d, err), handler.CallContext{Body: object.NewBody(m{"spec": "text"})}, handler.Attempt{}, nil, cause.Delete,
		func() *handler.Cause { return &handler.Cause{} })
	ctx := handler.WithObserver(t.Context(), ends(func(error) {}))
	if _, err := d.Call(ctx, c); err != nil || !untyped {
		t.Errorf("got %v, untyped: %t", err, untyped)
	}
}
