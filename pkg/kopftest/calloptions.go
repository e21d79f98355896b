package kopftest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/model/convergence"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/patch"
)

// CallOption configures Call, CallIndex, and Arguments.
type CallOption interface{ applyToCall(*callSettings) }

type callSettings struct {
	old       client.Object
	reason    kopf.Reason
	attempt   int
	param     any
	client    client.Client
	scheme    *runtime.Scheme
	operation admissionv1.Operation
	field     object.Path
	family    family
	err       error
}

type callOptionFunc func(*callSettings)

func (f callOptionFunc) applyToCall(s *callSettings) { f(s) }

// Old is the object as it was handled last; for admission handlers, as it is stored.
func Old(before client.Object) CallOption {
	return callOptionFunc(func(s *callSettings) {
		s.old = before
		s.operation = admissionv1.Update
	})
}

// Field is the field of a handler that is declared with kopf.Field, or by OnField: "spec.size".
// Old, New, and Diff of its arguments are those of the field. Sub-handlers see them, too. Other
// handlers ignore it.
func Field(field string) CallOption {
	return callOptionFunc(func(s *callSettings) {
		path, err := object.ParsePath(field)
		s.field = path
		s.err = errors.Join(s.err, err)
	})
}

// Reason is why the handler is called.
func Reason(reason kopf.Reason) CallOption {
	return callOptionFunc(func(s *callSettings) { s.reason = reason })
}

// Attempt is the number of the attempt: 2 for the first retry. Default: 1.
func Attempt(number int) CallOption {
	return callOptionFunc(func(s *callSettings) { s.attempt = number })
}

// Param is the value of the option kopf.Param.
func Param(value any) CallOption {
	return callOptionFunc(func(s *callSettings) { s.param = value })
}

// Client is the client of the handler, such as a fake client of controller-runtime. Default:
// the client of an empty API server in memory.
func Client(c client.Client) CallOption {
	return callOptionFunc(func(s *callSettings) {
		s.client = c
		s.scheme = c.Scheme()
	})
}

// Operation is the operation that an admission handler reviews. Default: an update with Old, otherwise a
// creation.
func Operation(operation admissionv1.Operation) CallOption {
	return callOptionFunc(func(s *callSettings) { s.operation = operation })
}

func (s schemeOption) applyToCall(c *callSettings) { c.scheme = s.scheme }

// subhandlers are those that one call of a handler, or of a sub-handler, registers.
type subhandlers struct {
	call     *callOf
	parent   *handler.Declaration
	handlers []*handler.Declaration
	called   int // how many of them
	problems []error
}

var _ handler.Subhandlers = (*subhandlers)(nil)

// Register remembers a sub-handler. Handlers call it by Change.Subhandler.
func (s *subhandlers) Register(d *handler.Declaration, err error) {
	if err != nil {
		s.problems = append(s.problems, err)
		return
	}
	sub := d.Under(s.parent)
	isSame := func(other *handler.Declaration) bool { return other.ID == sub.ID }
	if slices.ContainsFunc(s.handlers, isSame) {
		s.problems = append(s.problems, fmt.Errorf("%s: two sub-handlers have the id %q: each needs its own", d.DeclaredAt, d.ID))
		return
	}
	s.handlers = append(s.handlers, sub)
}

// Execute calls the sub-handlers, each once. It calls none if there is a mistake in them, as an operator does.
func (s *subhandlers) Execute(ctx context.Context) error {
	if len(s.problems) > 0 {
		return kopf.Permanent(errors.Join(s.problems...))
	}
	var failures []error
	for s.called < len(s.handlers) {
		sub := s.handlers[s.called]
		s.called++
		within := &subhandlers{call: s.call, parent: sub}
		_, err := sub.Call(ctx, s.call.change(sub, within))
		if err != nil {
			_, id, _ := strings.Cut(sub.ID, "/") // without the parent, whose id the test does not know
			failures = append(failures, fmt.Errorf("the sub-handler %q: %w", id, err))
			continue
		}
		failures = append(failures, within.Execute(ctx))
	}
	return errors.Join(failures...)
}

// Post records an event.
func (c *callOf) Post(ref corev1.ObjectReference, eventType, reason, message string) {
	c.events = append(c.events, PostedEvent{Object: ref, Type: eventType, Reason: reason, Message: message})
}

// outcome returns what the handler has done.
func (c *callOf) outcome(result any, err error) Outcome {
	c.t.Helper()
	made := Outcome{Err: err, Warnings: c.warnings, Events: c.events}
	if err == nil {
		made.Result = result
		if result == nil {
			made.Result = c.written
		}
	}
	var failure error
	made.Patch, failure = c.call.Patch.Resolve(c.body.Raw())
	if failure != nil {
		made.Err = errors.Join(made.Err, failure)
	}
	after, failure := c.call.Patch.Applied(c.body.Raw())
	if failure != nil {
		after = c.body.Raw()
	}
	made.Object = &unstructured.Unstructured{Object: runtime.DeepCopyJSON(after)}
	if c.body != c.first { // a daemon has written before it returned
		made.Patch = patch.Difference(c.first.Raw(), after)
	}
	return made
}

// family contains the child and the children that a call of a handler of children is about.
type family struct {
	child, old client.Object
	siblings   []client.Object
	drifted    []convergence.DriftedField
}

// Child is the child that a handler of children is called for: a created one, a changed one with
// OldChild, or, with Reason(kopf.ReasonDelete), a deleted one. Without this option, the call is
// about all Children.
func Child(child client.Object) CallOption {
	return callOptionFunc(func(s *callSettings) { s.family.child = child })
}

// OldChild is the child as of the last successful call of a handler of children.
func OldChild(before client.Object) CallOption {
	return callOptionFunc(func(s *callSettings) { s.family.old = before })
}

// Children are all children of the object, for a handler of children, or for a daemon that looks at them.
func Children(all ...client.Object) CallOption {
	return callOptionFunc(func(s *callSettings) { s.family.siblings = all })
}

// Drifted is a field of the Child that a field manager has changed, for a handler of drift: from
// what the handler of the children wants to what was found; nil is an absent value. The option can
// be repeated. With Reason(kopf.ReasonDelete), the child was deleted. Such a handler returns more
// than an error, so use Arguments:
//
//	c := kopftest.Arguments[*kopf.Drift](t, shop, kopftest.Child(theme), kopftest.Drifted("data.color", "kubectl-edit", "blue", "red"))
//	resolution, err := decide(t.Context(), c)
func Drifted(path, manager string, wanted, found any) CallOption {
	return callOptionFunc(func(s *callSettings) {
		s.family.drifted = append(s.family.drifted, convergence.DriftedField{
			Path: path, Manager: manager, Wanted: object.NewValue(wanted), Found: object.NewValue(found),
		})
	})
}

// drift returns what a handler of drift is called for.
func (c *callOf) drift() handler.DriftCall {
	of := handler.DriftCall{Drift: convergence.Drift{Fields: c.settings.family.drifted}}
	if child := c.settings.family.child; child != nil {
		live := c.bodyOf(child)
		kind := (&unstructured.Unstructured{Object: live.Raw()}).GroupVersionKind()
		of.Child = convergence.ChildKey{GroupKind: kind.GroupKind(), Namespace: live.Namespace(), Name: live.Name()}
		if c.settings.reason != kopf.ReasonDelete {
			of.Live = live
		}
	}
	return of
}

// childCall returns what a handler of children is called for.
func (c *callOf) childCall() handler.ChildCall {
	f := c.settings.family
	call := handler.ChildCall{Reason: kopf.ReasonResume, Children: c.siblings}
	if f.child != nil {
		call.Child = c.snapshot(f.child)
		call.Reason = kopf.ReasonCreate
	}
	if f.old != nil {
		call.Former = c.snapshot(f.old)
		call.Reason = kopf.ReasonUpdate
	}
	if c.settings.reason != "" {
		call.Reason = c.settings.reason
	}
	return call
}

// siblings returns all children.
func (c *callOf) siblings() []*object.Snapshot {
	var all []*object.Snapshot
	for _, one := range c.settings.family.siblings {
		all = append(all, c.snapshot(one))
	}
	return all
}

// snapshot returns an object as the watch keeps it.
func (c *callOf) snapshot(of client.Object) *object.Snapshot {
	c.t.Helper()
	text, err := c.bodyOf(of).JSON()
	if err != nil {
		c.t.Fatal(err)
	}
	snapshot, err := object.ParseSnapshot(text)
	if err != nil {
		c.t.Fatal(err)
	}
	return snapshot
}
