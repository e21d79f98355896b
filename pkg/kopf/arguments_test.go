package kopf

import (
	"context"
	"io"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/pkg/model/cause"
	"github.com/kopf-go/kopf/pkg/model/diff"
	"github.com/kopf-go/kopf/pkg/model/memo"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/patch"
	"github.com/kopf-go/kopf/pkg/model/selector"
)

func subject() handler.CallContext {
	return handler.CallContext{
		Body: object.NewBody(fields{
			"metadata": fields{
				"name": "one", "namespace": "ns", "uid": "u-1", "labels": fields{"a": "b"}, "annotations": fields{"c": "d"},
			},
			"spec": fields{"size": int64(1)}, "status": fields{"phase": "Ready"},
		}),
		Patch: &patch.Patch{}, Resource: &selector.Resource{Plural: "kopfexamples"}, Logger: logr.Discard(), Client: fakeClient{},
	}
}

type fakeClient struct{ client.Client }

// withParam is a declaration with a parameter.
var withParam = &handler.Declaration{Kind: handler.OnUpdate, Param: "param"}

func newChange(s handler.CallContext, a handler.Attempt, what *handler.Cause, subhandlers handler.Subhandlers) *Change {
	return changeOf(handler.NewChange(withParam, s, a, subhandlers, what.Reason, func() *handler.Cause { return what }))
}

// others are the arguments of the kinds that are not called for a change.
func others(s handler.CallContext, a handler.Attempt) map[string]Arguments {
	call := handler.NewCall(withParam, s, a)
	return map[string]Arguments{
		"an event": eventOf(call), "a daemon": taskOf(call), "a timer": tickOf(call), "an index": indexedOf(call),
	}
}

// parts records the sub-handlers of a handler.
type parts struct {
	handlers []*handler.Declaration
	problems []error
}

func (p *parts) Register(d *handler.Declaration, err error) {
	p.handlers, p.problems = append(p.handlers, d), append(p.problems, err)
}

func (p *parts) Execute(context.Context) error { return io.EOF }

func TestArgumentsProvideTheObject(t *testing.T) {
	s := subject()
	all := others(s, handler.Attempt{})
	all["a change"] = newChange(s, handler.Attempt{}, &handler.Cause{}, nil)
	for name, a := range all {
		t.Run(name, func(t *testing.T) {
			size, _ := a.Spec().Int64("size")
			phase, _ := a.Status().String("phase")
			got := []any{a.Name(), a.Namespace(), string(a.UID()), a.Labels()["a"], a.Annotations()["c"], size, phase, a.Resource().Plural, a.Param(), a.Meta().Has("name")}
			want := []any{"one", "ns", "u-1", "b", "d", int64(1), "Ready", "kopfexamples", "param", true}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("got %v, want %v", got, want)
			}
			if a.Body() != s.Body || a.Logger() != s.Logger {
				t.Error("the arguments have another body or logger")
			}
			w, writes := a.(interface {
				Patch() *patch.Patch
				Client() client.Client
			})
			if writes == (name == "an index") || writes && (w.Patch() != s.Patch || w.Client() != s.Client) {
				t.Error("the arguments have another patch or client")
			}
		})
	}
}

func TestChangeProvidesAttemptAndTransition(t *testing.T) {
	began := time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
	what := &handler.Cause{
		Reason: cause.Update, Old: fields{"spec": fields{"size": int64(1)}}, New: fields{"spec": fields{"size": int64(2)}},
		Diff: diff.Diff{{Op: diff.Change, Path: object.Path{"spec", "size"}, Old: int64(1), New: int64(2)}},
	}
	c := newChange(subject(), handler.Attempt{Retry: 3, Started: began, Now: began.Add(time.Minute)}, what, nil)
	if c.Retry() != 3 || !c.Started().Equal(began) || c.Runtime() != time.Minute || c.Reason() != ReasonUpdate {
		t.Errorf("got %d, %v, %v, %v", c.Retry(), c.Started(), c.Runtime(), c.Reason())
	}
	if !c.Old().Equals(what.Old) || !c.New().Equals(what.New) || len(c.Diff()) != 1 || !object.Equal(c.OldEssence(), what.Old) {
		t.Errorf("got %v, %v, %v, %v", c.Old(), c.New(), c.Diff(), c.OldEssence())
	}
	c.SetResult("a")
	c.SetResult("b")
	if c.Result() != "b" || c.Misfit() != nil {
		t.Errorf("got %v, %v", c.Result(), c.Misfit())
	}
}

func TestUnknownEssenceIsNil(t *testing.T) {
	c := newChange(subject(), handler.Attempt{}, &handler.Cause{Old: fields{"spec": unknownValue{}}}, nil)
	if c.OldEssence() != nil {
		t.Errorf("got %v", c.OldEssence())
	}
}

func TestEventProvidesItsType(t *testing.T) {
	call := handler.NewCall(withParam, subject(), handler.Attempt{})
	call.Event = watch.Deleted
	e := eventOf(call)
	if e.Type() != watch.Deleted || e.Reason() != "" || e.Old().Exists() || !e.New().Exists() || e.Diff() != nil {
		t.Errorf("got %v, %v, %v, %v, %v", e.Type(), e.Reason(), e.Old(), e.New(), e.Diff())
	}
	e.SetResult(1)
	if e.Result() != 1 {
		t.Errorf("got %v", e.Result())
	}
}

func TestSubhandlersAreRegistered(t *testing.T) {
	family := &parts{}
	c := newChange(subject(), handler.Attempt{}, &handler.Cause{}, family)
	c.Subhandler("item-1", createFn, Retries(2), Labels(nil))
	for id, fn := range map[string]func(context.Context, *Change) error{"": createFn, "item 2": createFn, "item-3": nil} {
		c.Subhandler(id, fn)
	}
	child := family.handlers[0]
	if child.ID != "item-1" || child.Kind != handler.Subhandler || *child.Retries != 2 {
		t.Errorf("got %+v", child)
	}
	for _, want := range []string{`the sub-handler "": its id is empty`, `under the id "item 2"`, "the function is nil"} {
		found := false
		for _, err := range family.problems[1:] {
			found = found || strings.Contains(err.Error(), want) && strings.Contains(err.Error(), "kopf/arguments_test.go")
		}
		if !found {
			t.Errorf("got %v, want %q", family.problems, want)
		}
	}
	if err := c.Execute(t.Context()); err != io.EOF { //nolint:errorlint // the very same
		t.Errorf("got %v", err)
	}
	if under := child.Under(&handler.Declaration{ID: "fn/spec"}); under.ID != "fn/spec/item-1" || child.ID != "item-1" {
		t.Errorf("got %q, and %q of the other", under.ID, child.ID)
	}
}

// The arguments of daemons and timers show the current object.
func TestArgumentsOfBackgroundHandlersAreLive(t *testing.T) {
	live := subject()
	var body *object.Body
	live.Live = func() *object.Body { return body }
	for name, a := range others(live, handler.Attempt{}) {
		t.Run(name, func(t *testing.T) {
			body = object.NewBody(fields{"metadata": fields{"name": "two", "labels": fields{"a": "x"}}, "spec": fields{"size": int64(2)}})
			if size, _ := a.Spec().Int64("size"); size != 2 || a.Name() != "two" || a.Labels()["a"] != "x" || a.Body() != body {
				t.Errorf("got %v", a.Body().Raw())
			}
			body = object.NewBody(fields{"spec": fields{"size": int64(3)}, "status": fields{"phase": "Gone"}})
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
	for name, a := range others(subject(), handler.Attempt{Retry: 3, Started: began, Now: began.Add(time.Minute)}) {
		attempt, tried := a.(interface {
			Retry() int
			Started() time.Time
			Runtime() time.Duration
		})
		if tried == (name == "an event") || tried && (attempt.Retry() != 3 || !attempt.Started().Equal(began) || attempt.Runtime() != time.Minute) {
			t.Errorf("%s: got %v", name, attempt)
		}
		if a.Reason() != "" || a.Old().Exists() || a.Diff() != nil || !a.New().Exists() {
			t.Errorf("%s: got %v, %v, %v, %v", name, a.Reason(), a.Old(), a.Diff(), a.New())
		}
	}
}

// All kinds of handlers get the same values, which are created only on use.
func TestArgumentsProvideMemos(t *testing.T) {
	values, asked := memo.NewValues(nil), 0
	s := subject()
	s.Memo = func() *memo.Values { asked++; return values }
	all := others(s, handler.Attempt{})
	all["a change"] = newChange(s, handler.Attempt{}, &handler.Cause{}, nil)
	if asked != 0 {
		t.Error("the values were created unnecessarily")
	}
	pings := memo.New(func() *int { return new(int) }, nil)
	for _, a := range all {
		*pings.Of(a)++
	}
	if *pings.Of(all["a change"]) != len(all) {
		t.Errorf("got %d", *pings.Of(all["a change"]))
	}
	for _, none := range others(subject(), handler.Attempt{}) {
		if none.Memo() != nil {
			t.Errorf("got %v", none.Memo())
		}
	}
}
