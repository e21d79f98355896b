package handler_test

import (
	"context"
	"io"
	"reflect"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/model/cause"
	"github.com/kopf-go/kopf/pkg/model/diff"
	"github.com/kopf-go/kopf/pkg/model/handler"
	"github.com/kopf-go/kopf/pkg/model/memo"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/patch"
	"github.com/kopf-go/kopf/pkg/model/selector"
)

func subject() handler.CallContext {
	return handler.CallContext{
		Body: object.NewBody(m{
			"metadata": m{
				"name": "one", "namespace": "ns", "uid": "u-1", "labels": m{"a": "b"}, "annotations": m{"c": "d"},
			},
			"spec": m{"size": int64(1)}, "status": m{"phase": "Ready"},
		}),
		Patch: &patch.Patch{}, Resource: &selector.Resource{Plural: "kopfexamples"}, Logger: logr.Discard(), Client: fakeClient{},
	}
}

type fakeClient struct{ client.Client }

// children records the sub-handlers of a handler.
type children struct {
	handlers []*handler.Declaration
	problems []error
}

func (c *children) Register(d *handler.Declaration, err error) {
	c.handlers, c.problems = append(c.handlers, d), append(c.problems, err)
}

func (c *children) Execute(context.Context) error { return io.EOF }

func TestArgumentsProvideTheObject(t *testing.T) {
	s := subject()
	for name, a := range map[string]interface {
		handler.Arguments
		Patch() *patch.Patch
		Client() client.Client
	}{
		"a change": handler.NewChange(s, "param", handler.Attempt{}, handler.Transition{}, nil),
		"an event": handler.NewEvent(s, "param", watch.Added),
	} {
		t.Run(name, func(t *testing.T) {
			size, _ := a.Spec().Int64("size")
			phase, _ := a.Status().String("phase")
			got := []any{a.Name(), a.Namespace(), string(a.UID()), a.Labels()["a"], a.Annotations()["c"], size, phase, a.Resource().Plural, a.Param(), a.Meta().Has("name")}
			want := []any{"one", "ns", "u-1", "b", "d", int64(1), "Ready", "kopfexamples", "param", true}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("got %v, want %v", got, want)
			}
			if a.Body() != s.Body || a.Patch() != s.Patch || a.Client() != s.Client || a.Logger() != s.Logger {
				t.Error("the arguments have another patch or client")
			}
		})
	}
}

func TestChangeProvidesAttemptAndTransition(t *testing.T) {
	began := time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
	transition := handler.Transition{
		Reason: cause.Update, Old: object.NewValue(int64(1)), New: object.NewValue(int64(2)),
		Diff: diff.Diff{{Op: diff.Change, Old: int64(1), New: int64(2)}}, OldEssence: m{"spec": m{"size": int64(1)}},
	}
	c := handler.NewChange(subject(), nil, handler.Attempt{Retry: 3, Started: began, Now: began.Add(time.Minute)}, transition, nil)
	if c.Retry() != 3 || !c.Started().Equal(began) || c.Runtime() != time.Minute || c.Reason() != cause.Update {
		t.Errorf("got %d, %v, %v, %v", c.Retry(), c.Started(), c.Runtime(), c.Reason())
	}
	if !c.Old().Equals(1) || !c.New().Equals(2) || len(c.Diff()) != 1 || !object.Equal(c.OldEssence(), transition.OldEssence) {
		t.Errorf("got %v, %v, %v, %v", c.Old(), c.New(), c.Diff(), c.OldEssence())
	}
	c.SetResult("a")
	c.SetResult("b")
	if c.Result() != "b" {
		t.Errorf("got %v", c.Result())
	}
}

func TestUnknownEssenceIsNil(t *testing.T) {
	c := handler.NewChange(subject(), nil, handler.Attempt{}, handler.Transition{OldEssence: m{"spec": hashed("x")}}, nil)
	if c.OldEssence() != nil {
		t.Errorf("got %v", c.OldEssence())
	}
}

func TestEventProvidesItsType(t *testing.T) {
	e := handler.NewEvent(subject(), nil, watch.Deleted)
	if e.Type() != watch.Deleted || e.Reason() != "" || e.Old().Exists() || !e.New().Exists() || e.Diff() != nil {
		t.Errorf("got %v, %v, %v, %v, %v", e.Type(), e.Reason(), e.Old(), e.New(), e.Diff())
	}
	e.SetResult(1)
	if e.Result() != 1 {
		t.Errorf("got %v", e.Result())
	}
}

func TestSubhandlersAreRegistered(t *testing.T) {
	family := &children{}
	c := handler.NewChange(subject(), nil, handler.Attempt{}, handler.Transition{}, family)
	c.Subhandler("item-1", doNothing, handler.Retries(2), handler.Labels(nil))
	c.Subhandler("", doNothing)
	c.Subhandler("item 2", doNothing)
	c.Subhandler("item-3", nil)
	child := declared(t, family.handlers[0], family.problems[0])
	if child.ID != "item-1" || child.Kind != handler.Subhandler || *child.Retries != 2 {
		t.Errorf("got %+v", child)
	}
	refused(t, family.handlers[1], family.problems[1], `the sub-handler "": its id is empty`, "handler/arguments_test.go")
	refused(t, family.handlers[2], family.problems[2], `under the id "item 2"`)
	refused(t, family.handlers[3], family.problems[3], "the function is nil")
	if err := c.Execute(t.Context()); err != io.EOF { //nolint:errorlint // the very same
		t.Errorf("got %v", err)
	}
	parent := update(t, handler.Field("spec"))
	if under := child.Under(parent); under.ID != "doNothing/spec/item-1" || child.ID != "item-1" {
		t.Errorf("got %q, and %q of the other", under.ID, child.ID)
	}
}

// The arguments of daemons and timers show the current object.
func TestArgumentsOfBackgroundHandlersAreLive(t *testing.T) {
	live := subject()
	body := object.NewBody(m{"metadata": m{"name": "two", "labels": m{"a": "x"}}, "spec": m{"size": int64(2)}})
	live.Live = func() *object.Body { return body }
	for name, a := range map[string]handler.Arguments{
		"a daemon": handler.NewTask(live, nil, handler.Attempt{}, nil),
		"a timer":  handler.NewTick(live, nil, handler.Attempt{}, nil),
	} {
		t.Run(name, func(t *testing.T) {
			body = object.NewBody(m{"metadata": m{"name": "two", "labels": m{"a": "x"}}, "spec": m{"size": int64(2)}})
			if size, _ := a.Spec().Int64("size"); size != 2 || a.Name() != "two" || a.Labels()["a"] != "x" || a.Body() != body {
				t.Errorf("got %v", a.Body().Raw())
			}
			body = object.NewBody(m{"spec": m{"size": int64(3)}, "status": m{"phase": "Gone"}})
			size, _ := a.Spec().Int64("size")
			phase, _ := a.Status().String("phase")
			if size != 3 || phase != "Gone" || len(a.Labels()) != 0 || !a.New().Equals(body.Raw()) {
				t.Errorf("got %v", a.Body().Raw())
			}
		})
	}
}

func TestArgumentsProvideTheAttempt(t *testing.T) {
	began := time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
	attempt := handler.Attempt{Retry: 3, Started: began, Now: began.Add(time.Minute)}
	for name, a := range map[string]interface {
		handler.Arguments
		Retry() int
		Started() time.Time
		Runtime() time.Duration
	}{
		"a daemon": handler.NewTask(subject(), nil, attempt, nil),
		"a timer":  handler.NewTick(subject(), nil, attempt, nil),
		"an index": handler.NewIndexed(subject(), nil, attempt),
	} {
		t.Run(name, func(t *testing.T) {
			if a.Retry() != 3 || !a.Started().Equal(began) || a.Runtime() != time.Minute {
				t.Errorf("got %d, %v, %v", a.Retry(), a.Started(), a.Runtime())
			}
			if a.Reason() != "" || a.Old().Exists() || a.Diff() != nil || !a.New().Exists() {
				t.Errorf("got %v, %v, %v, %v", a.Reason(), a.Old(), a.Diff(), a.New())
			}
			if result, ok := a.(interface {
				SetResult(any)
				Result() any
			}); ok {
				result.SetResult("a")
				if result.Result() != "a" {
					t.Errorf("got %v", result.Result())
				}
			}
		})
	}
}

// All kinds of handlers get the same values, which are created only on use.
func TestArgumentsProvideMemos(t *testing.T) {
	values, asked := memo.NewValues(nil), 0
	s := subject()
	s.Memo = func() *memo.Values { asked++; return values }
	all := []handler.Arguments{
		handler.NewChange(s, nil, handler.Attempt{}, handler.Transition{}, nil), handler.NewEvent(s, nil, ""),
		handler.NewTask(s, nil, handler.Attempt{}, nil), handler.NewTick(s, nil, handler.Attempt{}, nil), handler.NewIndexed(s, nil, handler.Attempt{}),
	}
	if asked != 0 {
		t.Error("the values were created unnecessarily")
	}
	pings := memo.New(func() *int { return new(int) }, nil)
	for _, a := range all {
		*pings.Of(a)++
	}
	if *pings.Of(all[0]) != len(all) {
		t.Errorf("got %d", *pings.Of(all[0]))
	}
	if none := handler.NewTick(subject(), nil, handler.Attempt{}, nil); none.Memo() != nil {
		t.Errorf("got %v", none.Memo())
	}
}
