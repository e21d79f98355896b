package write

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kopf-go/kopf/pkg/model/cause"
	"github.com/kopf-go/kopf/pkg/model/patch"
	"github.com/kopf-go/kopf/pkg/reconcile/call"
	"github.com/kopf-go/kopf/pkg/storage"
)

// inTurn returns a rule that gives one answer after another, and then accepts everything.
func inTurn(answers ...error) func(m) error {
	return func(m) error {
		if len(answers) == 0 {
			return nil
		}
		next := answers[0]
		answers = answers[1:]
		return next
	}
}

func TestAnUnansweredDryRunBlamesNobody(t *testing.T) {
	rejection := answer(http.StatusUnprocessableEntity)
	tests := map[string]struct {
		answers []error
		sent    string
	}{
		"of the records":      {[]error{rejection, errDown}, "PATCH, DRYRUN"},
		"without a bad edit":  {[]error{rejection, nil, rejection, errDown}, "PATCH, DRYRUN, DRYRUN, DRYRUN"},
		"of the first edit":   {[]error{rejection, nil, errDown}, "PATCH, DRYRUN, DRYRUN"},
		"of the second edit":  {[]error{rejection, nil, nil, errDown}, "PATCH, DRYRUN, DRYRUN, DRYRUN"},
		"after a bad edit":    {[]error{rejection, nil, rejection, nil, errDown}, "PATCH, DRYRUN, DRYRUN, DRYRUN, DRYRUN"},
		"of the last edit":    {[]error{rejection, nil, nil, nil, errDown}, "PATCH, DRYRUN, DRYRUN, DRYRUN, DRYRUN"},
		"without a bad write": {nil, "PATCH"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, m{})
			f.rejects = inTurn(test.answers...)
			for _, id := range []string{"a", "b", "c"} {
				f.edit(id, set("x", "spec", id))
			}
			_, err := f.Write(t.Context(), Update{Cycle: f.finished(cause.Create, "a", "b", "c")})
			f.expect("unanswered", errors.Is(err, errDown), test.answers != nil)
			f.expectSent(test.sent)
			f.flush()
			f.expect("b, c", []any{f.field("spec", "b"), f.field("spec", "c")}, []any{"x", "x"})
			f.expect("finished", f.done, map[string]int{"a": 1, "b": 1, "c": 1})
		})
	}
}

// An admission policy can begin while the edits are tried one by one. Then it is not known which
// of them it rejects.
func TestAPolicyThatBeginsMeanwhileBlamesNoHandler(t *testing.T) {
	f := newFixture(t, m{})
	policy := answer(http.StatusForbidden)
	f.rejects = inTurn(answer(http.StatusUnprocessableEntity), nil, nil, policy, policy)
	c := f.finished(cause.Create, "a", "b")
	f.edit("a", set("x", "spec", "a"))
	f.edit("b", set("x", "spec", "b"))
	err := f.writeFails(Update{Cycle: c})
	f.expect("rejected", errors.Is(err, policy), true)
	f.flush()
	_, failed := c.Progress.Counts()
	f.expect("failed, events", []int{failed, len(f.events)}, []int{0, 0})
	f.expect("spec", f.field("spec"), m{"size": 1, "a": "x", "b": "x"})
}

// An edit that is written already is no reason for a rejection, and needs no request.
func TestAWrittenEditIsNotTried(t *testing.T) {
	f := newFixture(t, m{})
	f.rejects = rejecting(http.StatusUnprocessableEntity, "spec", "bad")
	f.edit("good", set("x", "status", "good"))
	f.edit("bad", set("x", "spec", "bad"))
	f.write(Update{Cycle: f.finished(cause.Create, "good", "bad")})
	f.expectSent("PATCH status, PATCH, DRYRUN, DRYRUN, DRYRUN, PATCH")
}

// The dry run accepts what etcd rejects for its size. Without edits, only the records remain.
func TestARejectionWithoutEditsBlamesTheRecords(t *testing.T) {
	f := newFixture(t, m{})
	f.rejects = inTurn(answer(http.StatusUnprocessableEntity))
	err := f.writeFails(Update{Cycle: f.finished(cause.Create, "a")})
	f.expect("error", strings.Contains(err.Error(), "rejects the operator's own records"), true)
	f.expectSent("PATCH, DRYRUN")
}

func TestARejectedStatusFailsItsOwnHandlerOnly(t *testing.T) {
	f := newFixture(t, m{})
	f.rejects = rejecting(http.StatusUnprocessableEntity, "status", "bad")
	c := f.finished(cause.Create, "good", "bad")
	f.edit("good", set("x", "status", "good"))
	f.edit("bad", set("x", "status", "bad"))
	f.write(Update{Cycle: c})
	f.expect("status", f.field("status"), m{"good": "x"})
	f.expect("unreported successes", c.Unreported, []string{"good"})
}

// Records in the status are not a part of the write that is tried: it would look different.
func TestADryRunHasNoRecordsOfTheStatus(t *testing.T) {
	for _, subresource := range []bool{true, false} {
		f := newFixture(t, m{})
		f.server.statusSubresource, f.target.StatusSubresource = subresource, subresource
		f.writer.Records.Storages.Progress = storage.StatusProgress{}
		f.rejects = rejecting(http.StatusUnprocessableEntity, "spec", "bad")
		f.edit("a", set("x", "spec", "bad"))
		c := f.cycle(cause.Create, "a", "b")
		succeed(c, "a")
		f.write(Update{Cycle: c})
		for _, r := range f.requests {
			if _, has := r.patch["status"]; r.name == "DRYRUN" && has == subresource {
				t.Errorf("subresource %v: got %v", subresource, r.patch)
			}
		}
	}
}

func TestTheLargestEditIsBlamedForARejectionThatRepeats(t *testing.T) {
	tests := map[string]struct {
		edits map[string]string // by the field
		want  string
	}{
		"the first is larger":  {map[string]string{"a": "long", "b": "x"}, "a"},
		"the second is larger": {map[string]string{"a": "x", "b": "long"}, "b"},
		"both are as large":    {map[string]string{"a": "x", "b": "x"}, "a"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var s State
			for _, id := range []string{"a", "b"} {
				p := &patch.Patch{}
				p.Set(test.edits[id], "spec", id)
				s.Add(call.Edit{ID: id, Patch: p})
			}
			if got := s.largestEdit(m{}); got.ID != test.want {
				t.Errorf("got %s", got.ID)
			}
		})
	}
}

// requiring returns a transformation that fails for objects without a field, and sets another.
func requiring(field, sets string) func(*patch.Patch) {
	return func(p *patch.Patch) {
		p.Apply(func(obj *unstructured.Unstructured) error {
			if _, has, _ := unstructured.NestedFieldNoCopy(obj.Object, "spec", field); !has {
				return errors.New("the field is missing")
			}
			return unstructured.SetNestedField(obj.Object, "x", "spec", sets)
		})
	}
}

// The transformation cannot be tried alone.
func TestARejectedTransformationOfAnEditFailsItsOwnHandler(t *testing.T) {
	f := newFixture(t, m{})
	f.rejects = rejecting(http.StatusUnprocessableEntity, "spec", "bad")
	c := f.finished(cause.Create, "first", "second")
	f.edit("first", set("x", "spec", "first"))
	f.edit("second", requiring("first", "bad"))
	f.write(Update{Cycle: c})
	f.expect("unreported successes", c.Unreported, []string{"first"})
	f.expect("first, bad", []any{f.field("spec", "first"), f.field("spec", "bad")}, []any{"x", nil})
}

// The edit that a transformation builds on is rejected, and then the server rejects everything.
func TestATransformationFailsOnce(t *testing.T) {
	f := newFixture(t, m{})
	f.rejects = func(of m) error {
		if len(f.requests) == 5 {
			return answer(http.StatusUnprocessableEntity)
		}
		return rejecting(http.StatusUnprocessableEntity, "spec", "bad")(of)
	}
	c := f.finished(cause.Create, "first", "second")
	f.edit("first", set("x", "spec", "bad"))
	f.edit("second", requiring("bad", "second"))
	_ = f.writeFails(Update{Cycle: c})
	f.expectSent("PATCH, DRYRUN, DRYRUN, DRYRUN, DRYRUN")
	f.flush()
	f.expect("events", len(f.events), 2)
	f.expect("unreported successes", len(c.Unreported), 0)
}

// What is written already cannot be the cause.
func TestOnlyTheRestOfAnEditIsBlamed(t *testing.T) {
	var s State
	stored, other := &patch.Patch{}, &patch.Patch{}
	stored.Set("long", "spec", "a")
	other.Set("x", "spec", "b")
	s.Add(
		call.Edit{ID: "status", Patch: &patch.Patch{}, Result: "a very long result", StatusWritten: true},
		call.Edit{ID: "stored", Patch: stored},
		call.Edit{ID: "other", Patch: other},
	)
	if got := s.largestEdit(m{"spec": m{"a": "long"}}); got.ID != "other" {
		t.Errorf("got %s", got.ID)
	}
}

func TestARejectedConditionFailsNoHandler(t *testing.T) {
	f := newFixture(t, m{})
	f.rejects = rejecting(http.StatusUnprocessableEntity, "status", "conditions")
	c := f.finished(cause.Create, "a")
	p := &patch.Patch{}
	p.Set([]any{}, "status", "conditions")
	f.state.Add(call.Edit{ID: "a", Patch: p, BestEffort: true})
	f.expect("ended", f.write(Update{Cycle: c}).Ended, true)
	_, failed := c.Progress.Counts()
	f.expect("failed, events", []int{failed, len(f.events)}, []int{0, 0})
}

// Only an error of a transformation counts as an outcome of the handler.
func TestARejectionIsNoOutcomeOfTheHandler(t *testing.T) {
	f := newFixture(t, m{})
	f.rejects = rejecting(http.StatusUnprocessableEntity, "spec", "bad")
	c := f.finished(cause.Create, "a")
	p := &patch.Patch{}
	p.Set("x", "spec", "bad")
	f.state.Add(call.Edit{ID: "a", Patch: p, Revise: func(error) call.Outcome {
		t.Error("the handler is asked")
		return call.Outcome{}
	}})
	f.write(Update{Cycle: c})
	_, failed := c.Progress.Counts()
	f.expect("failed", failed, 1)
}

// Daemons have no record. They are told that their edit was rejected, and so is what observes the failures of handlers.
func TestARejectionIsToldToTheHandler(t *testing.T) {
	f := newFixture(t, m{})
	f.rejects = rejecting(http.StatusUnprocessableEntity, "spec", "bad")
	var told []error
	for _, id := range []string{"good", "bad"} {
		p := &patch.Patch{}
		p.Set("x", "spec", id)
		f.state.Add(call.Edit{ID: id, Patch: p, Failed: func(err error) { told = append(told, err) }})
	}
	f.write(Update{})
	f.expect("told", len(told) == 1 && apierrors.IsInvalid(told[0]), true)
}

func TestAFailedTransformationWithoutAnOutcomeFailsItsHandler(t *testing.T) {
	f := newFixture(t, m{"annotations": m{}})
	c := f.finished(cause.Create, "a")
	f.edit("a", appendTo("spec", "size")) // not a list
	f.write(Update{Cycle: c})
	_, failed := c.Progress.Counts()
	f.expect("failed, finished", []int{failed, f.done["a"]}, []int{1, 1})
}

// A conflict repeats the write, but not the failure.
func TestAFailedTransformationIsReportedOnce(t *testing.T) {
	f := newFixture(t, m{})
	f.faults = []fault{{before: func() { f.change(m{"metadata": m{"labels": m{"a": "b"}}}) }}}
	f.edit("a", appendTo("spec", "size")) // not a list
	f.write(Update{Cycle: f.finished(cause.Create, "a")})
	f.expectSent("PATCH, GET, PATCH")
	f.expect("events", len(f.events), 1)
}

func TestIsRejectedByContent(t *testing.T) {
	kex := schema.GroupResource{Resource: "kex"}
	status := func(reason metav1.StatusReason, message string) error {
		return &apierrors.StatusError{ErrStatus: metav1.Status{Reason: reason, Message: message}}
	}
	policy := func(message string) error {
		err := apierrors.NewForbidden(kex, "one", errors.New(message))
		err.ErrStatus.Details.Causes = []metav1.StatusCause{{Message: message}}
		return err
	}
	tests := map[string]struct {
		err  error
		want bool
	}{
		"an admission plugin that asks for a permission": {apierrors.NewForbidden(kex, "one", errors.New("cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on")), false},
		"a policy": {policy("no"), true},
		"a policy that quotes a lack of permission": {policy(`User "x" cannot patch resource "kex"`), true},
		"a webhook":                           {status(metav1.StatusReasonForbidden, `admission webhook "x" denied the request`), true},
		"a webhook with details":              {&apierrors.StatusError{ErrStatus: metav1.Status{Reason: metav1.StatusReasonForbidden, Details: &metav1.StatusDetails{}}}, true},
		"a lack of permission":                {apierrors.NewForbidden(kex, "one", errors.New(`User "x" cannot patch resource "kex"`)), false},
		"fields that are invalid":             {apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "patch", kex, "one", "", 0, false), true},
		"an invalid field with its cause":     {&apierrors.StatusError{ErrStatus: metav1.Status{Reason: metav1.StatusReasonInvalid, Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: metav1.CauseTypeFieldValueInvalid}}}}}, true},
		"an error of the client":              {errors.New("request is too large"), false},
		"a limit of etcd":                     {status(metav1.StatusReasonInternalError, "etcdserver: request is too large"), true},
		"a limit of the connection to etcd":   {status("", "rpc error: trying to send message larger than max"), true},
		"another internal error":              {status(metav1.StatusReasonInternalError, "etcdserver: no leader"), false},
		"another reason with the same text":   {status(metav1.StatusReasonTimeout, "request is too large"), false},
		"an unknown reason with another text": {status("", "no"), false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := isRejected(test.err); got != test.want {
				t.Errorf("got %v of %v", got, test.err)
			}
		})
	}
}
