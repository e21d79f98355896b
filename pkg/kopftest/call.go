package kopftest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/testr"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/model/diff"
	"github.com/kopf-go/kopf/pkg/model/memo"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/patch"
	"github.com/kopf-go/kopf/pkg/model/selector"
	"github.com/kopf-go/kopf/pkg/operator"
	"github.com/kopf-go/kopf/pkg/reconcile"
	"github.com/kopf-go/kopf/pkg/storage"
)

// Outcome is the result of one call of a handler.
type Outcome struct {
	// Err is the error of the handler.
	Err error
	// Object is the object after the patch of the handler.
	Object *unstructured.Unstructured
	// Patch is the merge patch that the operator would write to the object.
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
// kind that has an object and returns an error alone, with its arguments, such as *kopf.Change. CallFor
// calls handlers of a Go type, and CallIndex indexing functions; for others, see Arguments:
//
//	outcome := kopftest.Call(t, createFn, object, kopftest.Old(before))
//
// The reason is an update with Old, a deletion if the object is being deleted, and otherwise
// a creation. Sub-handlers are called once, after the handler. If one fails, or if there is a mistake
// in them, such as two with one id, the error of the outcome says which. Filters and options of
// declarations play no role; for a handler of a field, use Field.
func Call[A any](t testing.TB, fn func(context.Context, A) error, about client.Object, options ...CallOption) Outcome {
	t.Helper()
	c := newCallOf(t, about, options)
	d := declared(c, fn)
	call := c.about(d)
	err := c.invoke(d, call)
	return c.outcome(call.Result(), err)
}

// CallFor is Call for a handler of a Go type, which gets the object, too:
//
//	outcome := kopftest.CallFor(t, createSite, site)
func CallFor[T client.Object, A any](t testing.TB, fn func(context.Context, T, A) error, about client.Object, options ...CallOption) Outcome {
	t.Helper()
	return Call(t, func(ctx context.Context, arguments A) error {
		object, err := decoded[T](arguments)
		if err != nil {
			return err
		}
		return fn(ctx, object, arguments)
	}, about, options...)
}

// CallChildFor is Call for a handler of OnChildOf, which gets the parent and the child.
func CallChildFor[P, C client.Object](t testing.TB, fn func(context.Context, P, C, *kopf.ChildChange) error, about client.Object, options ...CallOption) Outcome {
	t.Helper()
	return CallFor(t, func(ctx context.Context, parent P, change *kopf.ChildChange) error {
		var child C
		if body := change.Child(); body != nil {
			child, _ = reflect.New(reflect.TypeFor[C]().Elem()).Interface().(C)
			if err := body.View().Decode(child); err != nil {
				return err
			}
		}
		return fn(ctx, parent, child, change)
	}, about, options...)
}

// CallIndex calls one indexing function for an object, without an operator, and returns what
// the index would contain for the object.
func CallIndex[K comparable, V any](t testing.TB, fn func(context.Context, *kopf.Indexed) (map[K]V, error), about client.Object, options ...CallOption) (map[K]V, error) {
	t.Helper()
	var values map[K]V
	outcome := Call(t, func(ctx context.Context, i *kopf.Indexed) (err error) {
		values, err = fn(ctx, i)
		return err
	}, about, options...)
	return values, outcome.Err
}

// CallIndexFor is CallIndex for an indexing function of a Go type.
func CallIndexFor[T client.Object, K comparable, V any](t testing.TB, fn func(context.Context, T, *kopf.Indexed) (map[K]V, error), about client.Object, options ...CallOption) (map[K]V, error) {
	t.Helper()
	return CallIndex(t, func(ctx context.Context, i *kopf.Indexed) (map[K]V, error) {
		object, err := decoded[T](i)
		if err != nil {
			return nil, err
		}
		return fn(ctx, object, i)
	}, about, options...)
}

// decoded returns the object of a handler of a Go type.
func decoded[T client.Object](arguments any) (T, error) {
	var none T
	of, ok := arguments.(interface{ Decode(into any) error })
	if !ok {
		return none, fmt.Errorf("%T is not an argument of a handler, such as *kopf.Change", arguments)
	}
	object, _ := reflect.New(reflect.TypeFor[T]().Elem()).Interface().(T)
	if err := of.Decode(object); err != nil {
		return none, err
	}
	return object, nil
}

// Arguments returns the arguments of a handler, to call it by hand, for example a function of Ensure
// or OnDrift, which returns more than an error:
//
//	c := kopftest.Arguments[*kopf.Change](t, object)
func Arguments[A any](t testing.TB, about client.Object, options ...CallOption) A {
	t.Helper()
	c := newCallOf(t, about, options)
	var got A
	d := declared(c, func(_ context.Context, arguments A) error {
		got = arguments
		return nil
	})
	if _, err := d.Call(t.Context(), c.about(d)); err != nil {
		t.Fatal(err)
	}
	return got
}

// declared declares a handler of the kind that has the arguments, as an operator does.
func declared[A any](c *callOf, fn func(context.Context, A) error) *handler.Declaration {
	c.t.Helper()
	r := kopf.NewRegistry()
	everything := kopf.Resource(kopf.Everything)
	id := kopf.ID("handler")
	param := kopf.Param(c.settings.param)
	switch fn := any(fn).(type) {
	case func(context.Context, *kopf.Change) error:
		options := []kopf.ChangeOption{id, param}
		if c.settings.field != nil {
			options = append(options, kopf.Field(c.settings.field...))
		}
		r.OnCreate(everything, fn, options...)
	case func(context.Context, *kopf.WatchEvent) error:
		r.OnEvent(everything, fn, id, param)
	case func(context.Context, *kopf.Task) error:
		r.Daemon(everything, fn, id, param)
	case func(context.Context, *kopf.Tick) error:
		r.Timer(everything, fn, id, param)
	case func(context.Context, *kopf.Admission) error:
		r.OnMutate(everything, fn, id, param)
	case func(context.Context, *kopf.ChildChange) error:
		r.OnChild(everything, everything, fn, id, param)
	case func(context.Context, *kopf.Drift) error:
		r.OnDrift(everything, func(ctx context.Context, d *kopf.Drift) (kopf.Resolution, error) {
			return kopf.Resolution{}, fn(ctx, d)
		}, id, param)
		r.Ensure(everything, func(context.Context, *kopf.Change) ([]client.Object, error) { return nil, nil }, kopf.ID("children"))
	case func(context.Context, *kopf.Indexed) error:
		kopf.NewIndex(r, everything, func(ctx context.Context, i *kopf.Indexed) (map[string]string, error) { return nil, fn(ctx, i) }, id, param)
	default:
		c.t.Fatalf("%s is not an argument of a handler, such as *kopf.Change", reflect.TypeFor[A]())
	}
	handlers, err := r.Declarations().Handlers(c.settings.scheme)
	if err != nil {
		c.t.Fatal(err)
	}
	return handlers[0]
}

// callOf is one call of a handler.
type callOf struct {
	t        testing.TB
	settings callSettings
	body     *object.Body
	call     handler.CallContext
	subs     subhandlers
	ctx      context.Context // of the handler
	stopper  handler.Stopper // of a daemon or a timer
	written  any             // the last result that a daemon has written before it returned
	first    *object.Body    // before that
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
	c.first = c.body
	// The plural is guessed in the same way as Kubernetes does.
	kind := (&unstructured.Unstructured{Object: c.body.Raw()}).GroupVersionKind()
	guessed, _ := meta.UnsafeGuessKindToResource(kind)
	resource := &selector.Resource{
		Group: kind.Group, Version: kind.Version, Kind: kind.Kind, Plural: strings.ToLower(guessed.Resource), Namespaced: c.body.Namespace() != "",
	}
	logger := logr.Discard()
	if t, ok := t.(*testing.T); ok {
		logger = testr.New(t)
	}
	memos := memo.NewValues(nil)
	c.call = handler.CallContext{
		Body: c.body, Patch: &patch.Patch{}, Resource: resource, Client: c.settings.client,
		Logger: logger, Memo: func() *memo.Values { return memos },
	}
	return c
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

// about returns the call of a handler.
func (c *callOf) about(d *handler.Declaration) *handler.Call {
	c.subs = subhandlers{call: c, parent: d}
	switch d.Kind {
	case handler.OnChild:
		return handler.NewChildCall(d, c.call, c.attempt(), c.childCall())
	case handler.OnDrift:
		return handler.NewDriftCall(d, c.call, c.change(d, &c.subs), c.drift())
	case handler.OnMutate:
		call := handler.NewCall(d, c.call, handler.Attempt{})
		call.Review = c.review()
		return call
	case handler.OnDaemon, handler.OnTimer:
		c.call.Live = func() *object.Body { return c.body }
		call := handler.NewCall(d, c.call, c.attempt())
		call.Background = c
		return call
	case handler.OnEvent:
		call := handler.NewCall(d, c.call, handler.Attempt{})
		call.Event = apiwatch.Modified
		return call
	case handler.OnIndex:
		return handler.NewCall(d, c.call, c.attempt())
	default:
		return c.change(d, &c.subs)
	}
}

func (c *callOf) attempt() handler.Attempt {
	now := time.Now()
	return handler.Attempt{Retry: c.settings.attempt - 1, Started: now, Now: now}
}

// change returns the call of a handler of changes, or of a sub-handler.
func (c *callOf) change(d *handler.Declaration, subs *subhandlers) *handler.Call {
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
	return handler.NewChange(d, c.call, c.attempt(), subs, about.Reason, func() *handler.Cause { return about })
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

// review returns the request of the API server.
func (c *callOf) review() *handler.Review {
	review := &handler.Review{
		Operation: c.settings.operation, New: c.body, Name: c.body.Name(), Namespace: c.body.Namespace(),
		Warn: func(message string) { c.warnings = append(c.warnings, message) },
	}
	if c.settings.old != nil {
		review.Old = c.bodyOf(c.settings.old)
	}
	return review
}

// invoke calls the handler, and its sub-handlers after it. A panic is an error.
func (c *callOf) invoke(d *handler.Declaration, call *handler.Call) error {
	ctx := operator.WithCall(c.t.Context(), c.settings.client, c, reconcile.CallContext{
		Body: func() *object.Body { return c.body }, Resource: *c.call.Resource, Logger: c.call.Logger,
	})
	c.ctx = ctx
	if _, err := d.CallIsolated(ctx, call); err != nil {
		if panicked := (*handler.PanicError)(nil); errors.As(err, &panicked) {
			c.t.Logf("The handler has panicked: %v\n%s", panicked.Value, panicked.Stack)
		}
		return err
	}
	return handler.WithRecover(func() error { return c.subs.Execute(ctx) })
}

var _ handler.Background = (*callOf)(nil)

// Stopper implements handler.Background: nothing stops the call.
func (c *callOf) Stopper() *handler.Stopper { return &c.stopper }

// Done implements handler.Background.
func (c *callOf) Done() <-chan struct{} {
	if c.ctx == nil {
		return nil
	}
	return c.ctx.Done()
}

// Changed implements handler.Background: nothing changes.
func (c *callOf) Changed() <-chan struct{} { return nil }

// Children implements handler.Background.
func (c *callOf) Children() []*object.Snapshot { return c.siblings() }

// Write implements handler.Background. The daemon sees what it has written, and the outcome contains it.
func (c *callOf) Write(_ context.Context, result any, edit *patch.Patch) error {
	if result != nil {
		edit.Set(result, "status", "handler")
		c.written = result
	}
	after, err := edit.Applied(c.body.Raw())
	if err != nil {
		return err
	}
	c.body = object.NewBody(after)
	return nil
}
