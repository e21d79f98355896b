package kopftest

import (
	"context"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/testr"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/model/diff"
	"github.com/kopf-go/kopf/pkg/model/handler"
	"github.com/kopf-go/kopf/pkg/model/memo"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/patch"
	"github.com/kopf-go/kopf/pkg/model/selector"
	"github.com/kopf-go/kopf/pkg/operator"
	"github.com/kopf-go/kopf/pkg/reconcile"
	"github.com/kopf-go/kopf/pkg/storage"
)

// Outcome is what one call of a handler has done.
type Outcome struct {
	// Err is the error of the handler.
	Err error
	// Object is the object after the patch of the handler.
	Object *unstructured.Unstructured
	// Patch is what the operator would write to the object, as a merge patch.
	Patch map[string]any
	// Result is the value of SetResult.
	Result any
	// Warnings are those of an admission handler.
	Warnings []string
	// Events are the Kubernetes events of the handler, without those of the operator.
	Events []PostedEvent
}

// PostedEvent is a Kubernetes event that a handler has posted.
type PostedEvent struct {
	Object                corev1.ObjectReference
	Type, Reason, Message string
}

// Call calls one handler for an object, without an operator. The function is a handler of any
// kind that has an object and returns an error alone, with its typed or untyped arguments. CallIndex
// calls indexing functions; for others, see Arguments:
//
//	outcome := kopftest.Call(t, createFn, object, kopftest.Old(before))
//
// The reason is an update with Old, a deletion if the object is being deleted, and otherwise
// a creation. Sub-handlers are called once, after the handler. Filters and options of
// declarations play no role; for a handler of a field, use Field.
func Call[A any](t testing.TB, fn func(context.Context, A) error, about client.Object, options ...CallOption) Outcome {
	t.Helper()
	c := newCallOf(t, about, options)
	arguments, err := argumentsOf[A](c)
	if err == nil {
		err = c.invoke(func(ctx context.Context) error { return fn(ctx, arguments) })
	}
	return c.outcome(any(arguments), err)
}

// CallIndex calls one indexing function for an object, without an operator, and returns what
// the index would contain for the object.
func CallIndex[A any, K comparable, V any](t testing.TB, fn func(context.Context, A) (map[K]V, error), about client.Object, options ...CallOption) (map[K]V, error) {
	t.Helper()
	c := newCallOf(t, about, options)
	arguments, err := argumentsOf[A](c)
	if err != nil {
		return nil, err
	}
	var values map[K]V
	err = c.invoke(func(ctx context.Context) (err error) {
		values, err = fn(ctx, arguments)
		return err
	})
	return values, err
}

// Arguments returns the arguments of a handler, to call it by hand, for example a function of Ensure
// or OnDrift, which returns more than an error:
//
//	c := kopftest.Arguments[*kopf.Change](t, object)
func Arguments[A any](t testing.TB, about client.Object, options ...CallOption) A {
	t.Helper()
	arguments, err := argumentsOf[A](newCallOf(t, about, options))
	if err != nil {
		t.Fatal(err)
	}
	return arguments
}

// callOf is one call of a handler.
type callOf struct {
	t        testing.TB
	settings callSettings
	body     *object.Body
	call     handler.CallContext
	children []*handler.Declaration
	problems []error
	warnings []string
	events   []PostedEvent
}

func newCallOf(t testing.TB, about client.Object, options []CallOption) *callOf {
	t.Helper()
	c := &callOf{t: t, settings: callSettings{scheme: scheme.Scheme, attempt: 1, operation: admissionv1.Create}}
	for _, option := range options {
		option.applyToCall(&c.settings)
	}
	if c.settings.err != nil {
		t.Fatal(c.settings.err)
	}
	if c.settings.client == nil {
		made, err := client.New(NewAPIServer(t).Config(), client.Options{Scheme: c.settings.scheme})
		if err != nil {
			t.Fatal(err)
		}
		c.settings.client = made
	}
	c.body = c.bodyOf(about)
	memos := memo.NewValues(nil)
	c.call = handler.CallContext{
		Body: c.body, Patch: &patch.Patch{}, Resource: c.resource(), Client: c.settings.client,
		Logger: c.logger(), Memo: func() *memo.Values { return memos },
	}
	return c
}

func (c *callOf) logger() logr.Logger {
	if t, ok := c.t.(*testing.T); ok {
		return testr.New(t)
	}
	return logr.Discard()
}

// bodyOf returns an object as handlers see it.
func (c *callOf) bodyOf(about client.Object) *object.Body {
	c.t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(about)
	if err != nil {
		c.t.Fatalf("%T is not an object: %v", about, err)
	}
	raw := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(content)}
	if kind, err := apiutil.GVKForObject(about, c.settings.scheme); err == nil {
		raw.SetGroupVersionKind(kind)
	}
	return object.NewBody(raw.Object)
}

// resource returns the resource that an object probably has.
func (c *callOf) resource() *selector.Resource {
	kind := (&unstructured.Unstructured{Object: c.body.Raw()}).GroupVersionKind()
	return &selector.Resource{
		Group: kind.Group, Version: kind.Version, Kind: kind.Kind, Plural: pluralOf(kind), Namespaced: c.body.Namespace() != "",
	}
}

// argumentsOf returns the arguments of one kind, or of its typed form.
func argumentsOf[A any](c *callOf) (A, error) {
	all := []any{c.change(), c.event(), c.task(), c.tick(), c.admission(), c.indexed(), c.childChange(), c.drift()}
	for _, one := range all {
		if arguments, ok := one.(A); ok {
			return arguments, nil
		}
	}
	var none A
	kind := reflect.TypeFor[A]()
	if kind.Kind() != reflect.Pointer {
		return none, c.unsupported(kind)
	}
	typed, ok := reflect.New(kind.Elem()).Interface().(A)
	if !ok {
		return none, c.unsupported(kind)
	}
	return typed, c.bind(any(typed), kind)
}

func (c *callOf) unsupported(kind reflect.Type) error {
	return fmt.Errorf("%s is not an argument of a handler, such as *kopf.Change", kind)
}

// bind fills typed arguments.
func (c *callOf) bind(typed any, kind reflect.Type) error {
	switch typed := typed.(type) {
	case interface{ Bind(*kopf.Change) error }:
		return typed.Bind(c.change())
	case interface{ Bind(*kopf.ChildChange) error }:
		return typed.Bind(c.childChange())
	case interface{ Bind(*kopf.Drift) error }:
		return typed.Bind(c.drift())
	case interface{ Bind(*kopf.WatchEvent) error }:
		return typed.Bind(c.event())
	case interface{ Bind(*kopf.Task) error }:
		return typed.Bind(c.task())
	case interface{ Bind(*kopf.Tick) error }:
		return typed.Bind(c.tick())
	case interface{ Bind(*kopf.Admission) error }:
		return typed.Bind(c.admission())
	case interface{ Bind(*kopf.Indexed) error }:
		return typed.Bind(c.indexed())
	default:
		return c.unsupported(kind)
	}
}

func (c *callOf) attempt() handler.Attempt {
	now := time.Now()
	return handler.Attempt{Retry: c.settings.attempt - 1, Started: now, Now: now}
}

func (c *callOf) change() *kopf.Change {
	var fields []object.Path
	if c.settings.field != nil {
		fields = append(fields, c.settings.field) // it can be in the status
	}
	about := &handler.Cause{Reason: c.reason(), New: storage.BuildEssence(c.body, fields)}
	var before any
	if c.settings.old != nil {
		about.Old = storage.BuildEssence(c.bodyOf(c.settings.old), fields)
		before = about.Old
	}
	about.Diff = diff.Compute(before, about.New, diff.Full)
	declared := &handler.Declaration{Field: c.settings.field}
	return handler.NewChange(c.call, c.settings.param, c.attempt(), declared.Transition(about), c)
}

func (c *callOf) reason() kopf.Reason {
	switch {
	case c.settings.reason != "":
		return c.settings.reason
	case c.body.Meta().Has("deletionTimestamp"):
		return kopf.ReasonDelete
	case c.settings.old != nil:
		return kopf.ReasonUpdate
	default:
		return kopf.ReasonCreate
	}
}

func (c *callOf) event() *kopf.WatchEvent {
	return handler.NewEvent(c.call, c.settings.param, apiwatch.Modified)
}

func (c *callOf) task() *kopf.Task {
	return handler.NewTask(c.call, c.settings.param, c.attempt(), nil)
}

func (c *callOf) tick() *kopf.Tick {
	return handler.NewTick(c.call, c.settings.param, c.attempt(), handler.NewStopper())
}

func (c *callOf) indexed() *kopf.Indexed {
	return handler.NewIndexed(c.call, c.settings.param, c.attempt())
}

func (c *callOf) admission() *kopf.Admission {
	review := &handler.Review{
		Operation: c.settings.operation, New: c.body, Name: c.body.Name(), Namespace: c.body.Namespace(),
		Warn: func(message string) { c.warnings = append(c.warnings, message) },
	}
	if c.settings.old != nil {
		review.Old = c.bodyOf(c.settings.old)
	}
	return handler.NewAdmission(c.call, &handler.Declaration{Param: c.settings.param}, review)
}

// invoke calls the handler, and its sub-handlers after it. A panic is an error.
func (c *callOf) invoke(call func(context.Context) error) error {
	ctx := operator.WithCall(c.t.Context(), c.settings.client, c, reconcile.CallContext{
		Body: func() *object.Body { return c.body }, Resource: *c.call.Resource, Logger: c.call.Logger,
	})
	return handler.WithRecover(func() error {
		if err := call(ctx); err != nil {
			return err
		}
		return c.Execute(ctx)
	})
}
