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

// children records what a handler does with its sub-handlers.
type children struct {
	handlers []*handler.Declaration
	problems []error
}

func (c *children) Register(d *handler.Declaration, err error) {
	c.handlers, c.problems = append(c.handlers, d), append(c.problems, err)
}

func (c *children) Execute(context.Context) error { return io.EOF }

func TestAllKindsOfArgumentsTellOfTheObject(t *testing.T) {
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
				t.Error("the means to work on the object are others")
			}
		})
	}
}

func TestAChangeTellsOfTheAttemptAndTheTransition(t *testing.T) {
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

func TestAnEssenceThatIsNotKnownIsNone(t *testing.T) {
	c := handler.NewChange(subject(), nil, handler.Attempt{}, handler.Transition{OldEssence: m{"spec": hashed("x")}}, nil)
	if c.OldEssence() != nil {
		t.Errorf("got %v", c.OldEssence())
	}
}

func TestAnEventTellsItsType(t *testing.T) {
	e := handler.NewEvent(subject(), nil, watch.Deleted)
	if e.Type() != watch.Deleted || e.Reason() != "" || e.Old().Exists() || !e.New().Exists() || e.Diff() != nil {
		t.Errorf("got %v, %v, %v, %v, %v", e.Type(), e.Reason(), e.Old(), e.New(), e.Diff())
	}
	e.SetResult(1)
	if e.Result() != 1 {
		t.Errorf("got %v", e.Result())
	}
}

func TestSubhandlers(t *testing.T) {
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
	refused(t, family.handlers[1], family.problems[1], `the subhandler handler "": its id is empty`, "handler/arguments_test.go")
	refused(t, family.handlers[2], family.problems[2], `under the id "item 2"`)
	refused(t, family.handlers[3], family.problems[3], "there is no function to call")
	if err := c.Execute(t.Context()); err != io.EOF { //nolint:errorlint // the very same
		t.Errorf("got %v", err)
	}
	parent := update(t, handler.Field("spec"))
	if under := child.Under(parent); under.ID != "doNothing/spec/item-1" || child.ID != "item-1" {
		t.Errorf("got %q, and %q of the other", under.ID, child.ID)
	}
}
