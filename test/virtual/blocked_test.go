package virtual

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/kopftest"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/storage"
)

// errNoPermission is the answer of the API server if the role does not allow to patch the status.
var errNoPermission = apierrors.NewForbidden(schema.GroupResource{Group: "kopf.dev", Resource: "kopfexamples"}, "one",
	errors.New(`the user "operator" cannot patch resource "kopfexamples/status" in API group "kopf.dev" in the namespace "default"`))

// errConflict is the answer of the API server if another client has written to the object first.
var errConflict = apierrors.NewConflict(schema.GroupResource{Group: "kopf.dev", Resource: "kopfexamples"}, "one", errors.New("the object has been modified"))

// clean is a deletion handler that fails twice.
func clean(_ context.Context, c *kopf.Change) error {
	if c.Retry() < 2 {
		return kopf.Temporary(errors.New("not yet"), time.Minute)
	}
	return nil
}

// withResult sets a result, which goes to the status.
func withResult(_ context.Context, c *kopf.Change) error {
	c.SetResult("done")
	return nil
}

// What cannot be stored does not hold a deletion: the deletion handlers are called, with retries, and
// the object is released.
func TestDeletionIsNotHeldByWhatCannotBeStored(t *testing.T) {
	forbidding, denying := &policy{code: http.StatusForbidden}, &policy{code: http.StatusUnprocessableEntity}
	early, late := &policy{code: http.StatusForbidden}, &policy{code: http.StatusUnprocessableEntity}
	tests := map[string]struct {
		declare func(r *kopf.Registry)
		// block prevents the operator from storing something.
		block   func(h *kopftest.Harness)
		options []kopftest.Option
		// foreign is set if a finalizer of another controller keeps the object at the end.
		foreign bool
		// early is set if the operator can store nothing from the beginning.
		early bool
	}{
		"a result of a creation, without permission": {
			declare: func(r *kopf.Registry) { r.OnCreate(examples, withResult, kopf.ID("create")) },
			block: func(h *kopftest.Harness) {
				h.Fail(kopftest.Requests{Verb: "patch", Resource: "kopfexamples/status"}, 0, errNoPermission)
			},
			early: true,
		},
		"a result of a timer, without permission": {
			declare: func(r *kopf.Registry) {
				r.Timer(examples, func(_ context.Context, c *kopf.Tick) error {
					c.SetResult("done")
					return nil
				}, kopf.ID("tick"), kopf.Interval(time.Minute))
			},
			block: func(h *kopftest.Harness) {
				h.Fail(kopftest.Requests{Verb: "patch", Resource: "kopfexamples/status"}, 0, errNoPermission)
			},
			early: true,
		},
		"conditions, without permission": {
			declare: func(r *kopf.Registry) { r.Conditions(examples) },
			block: func(h *kopftest.Harness) {
				h.Fail(kopftest.Requests{Verb: "patch", Resource: "kopfexamples/status"}, 0, errNoPermission)
			},
			early: true,
		},
		"a result after a conflict, because the object cannot be read": {
			declare: func(r *kopf.Registry) { r.OnUpdate(examples, withResult, kopf.ID("update")) },
			block: func(h *kopftest.Harness) {
				failReads(h)
				h.Fail(kopftest.Requests{Verb: "patch", Resource: "kopfexamples/status"}, 2, errConflict)
				h.Patch(newExample(), `{"spec": {"size": 4}}`)
			},
		},
		"records after a conflict, because the object cannot be read": {
			block: func(h *kopftest.Harness) {
				failReads(h)
				h.Fail(kopftest.Requests{Verb: "patch", Resource: "kopfexamples"}, 2, errConflict)
			},
		},
		"records, because others fill the annotations": {block: fillAnnotations},
		"records, while another finalizer stays":       {block: fillAnnotations, foreign: true},
		"records, because a policy forbids them (403)": {declare: forbidding.declare, block: forbidding.begin},
		"records, because a policy forbids them (422)": {declare: denying.declare, block: denying.begin, foreign: true},
		"the end, because a policy begins meanwhile": {
			declare: late.declare,
			block: func(h *kopftest.Harness) {
				time.AfterFunc(10*time.Minute+30*time.Second, func() { late.begin(h) }) // after the first attempt of the deletion handler
			},
			foreign: true,
		},
		"any annotation, because a policy forbids it": {
			declare: func(r *kopf.Registry) {
				early.declare(r)
				r.OnCreate(examples, withResult, kopf.ID("create"))
			},
			block: early.begin, early: true,
		},
		"records, because the storage fails": {
			options: []kopftest.Option{kopftest.Settings(func(s *kopf.Settings) {
				s.Persistence.Progress = failingStorage{storage.AnnotationsProgress{}}
			})},
			block: func(*kopftest.Harness) {},
		},
		"an update that no handler matches": {
			declare: func(r *kopf.Registry) {
				r.OnUpdate(examples, withResult, kopf.ID("update"), kopf.Field("spec.other"))
			},
			block: func(h *kopftest.Harness) {
				fillAnnotations(h)
				h.Patch(newExample(), `{"spec": {"size": 4}}`)
			},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			withOperator(t, func(r *kopf.Registry) {
				r.OnDelete(examples, clean, kopf.ID("clean"))
				if test.declare != nil {
					test.declare(r)
				}
			}, func(t *testing.T, h *kopftest.Harness) {
				one := newExample()
				if test.foreign {
					one.SetFinalizers([]string{"example.com/other"})
				}
				if test.early {
					test.block(h)
					h.Create(one)
				} else {
					h.Create(one)
					h.Advance(time.Minute)
					test.block(h)
				}
				h.Advance(10 * time.Minute)
				h.Delete(one)
				h.Advance(time.Hour)
				calls := h.Calls("clean")
				if len(calls) != 3 || calls[2].Err != nil || calls[2].Attempt != 3 {
					t.Errorf("got %v, want three attempts", calls)
				}
				if !test.foreign && h.Exists(one) {
					t.Error("the object is not released")
				}
				if test.foreign {
					h.Get(one)
					if left := one.GetFinalizers(); len(left) != 1 || left[0] != "example.com/other" {
						t.Errorf("the finalizers are %v", left)
					}
				}
			}, test.options...)
		})
	}
}

// The end of a handler that could not be stored is stored as soon as it can be: a restart does not
// call the handler again.
func TestAnEndThatCouldNotBeStoredIsStoredLater(t *testing.T) {
	withOperator(t, func(r *kopf.Registry) {
		r.OnDelete(examples, func(context.Context, *kopf.Change) error { return nil }, kopf.ID("quick"))
		r.OnDelete(examples, clean, kopf.ID("clean"))
	}, func(t *testing.T, h *kopftest.Harness) {
		one := newExample()
		h.Create(one)
		h.Advance(time.Minute)
		fillAnnotations(h)
		h.Delete(one)
		h.Advance(30 * time.Second)
		h.Patch(one, `{"metadata": {"annotations": {"example.com/large": null}}}`)
		h.Advance(45 * time.Second)
		h.Crash()
		h.Advance(time.Hour)
		if quick, again := h.Calls("quick"), h.Calls("clean"); len(quick) != 1 || len(again) != 3 || h.Exists(one) {
			t.Errorf("got %v and %v, exists: %t", quick, again, h.Exists(one))
		}
	})
}

// fillAnnotations leaves a few bytes of what the annotations of an object may take.
func fillAnnotations(h *kopftest.Harness) {
	h.Patch(newExample(), `{"metadata": {"annotations": {"example.com/large": "`+strings.Repeat("x", 261_500)+`"}}}`)
	h.Advance(time.Minute)
}

// policy forbids changes of annotations when it has begun.
type policy struct {
	code  int
	begun atomic.Bool
}

func (p *policy) declare(r *kopf.Registry) {
	r.OnValidate(examples, func(_ context.Context, a *kopf.Admission) error {
		if p.begun.Load() && len(a.Diff()) > 0 {
			return kopf.Reject("annotations must not be changed", p.code)
		}
		return nil
	}, kopf.ID("policy"), kopf.Field("metadata.annotations"), kopf.Operations(admissionv1.Update))
}

func (p *policy) begin(*kopftest.Harness) { p.begun.Store(true) }

// failReads lets the role allow to list and watch the objects, but not to get one.
func failReads(h *kopftest.Harness) {
	h.Fail(kopftest.Requests{Verb: "get", Resource: "kopfexamples"}, 0, apierrors.NewForbidden(schema.GroupResource{Group: "kopf.dev", Resource: "kopfexamples"}, "one",
		errors.New(`the user "operator" cannot get resource "kopfexamples" in API group "kopf.dev" in the namespace "default"`)))
}

// failingStorage stores no records of deletions.
type failingStorage struct{ storage.Progress }

func (s failingStorage) Store(ctx context.Context, body *object.Body, into storage.Patch, id string, r *storage.Record) error {
	if body.Deleting() {
		return errors.New("the storage is full")
	}
	return s.Progress.Store(ctx, body, into, id, r)
}

// What cannot be stored does not hold what needs no storing: daemons and timers end when the object does not match
// them anymore, and a suspension stops them.
func TestWhatCannotBeStoredHoldsNeitherDaemonsNorSuspensions(t *testing.T) {
	running := 0
	withOperator(t, func(r *kopf.Registry) {
		r.OnCreate(examples, withResult, kopf.ID("create"))
		r.OnDelete(examples, clean, kopf.ID("clean")) // so the object has the finalizer that the daemon needs
		r.Daemon(examples, func(_ context.Context, task *kopf.Task) error {
			running++
			<-task.Stopped()
			running--
			return nil
		}, kopf.ID("watch"), kopf.Labels(map[string]kopf.Matcher{"watched": kopf.Equal("yes")}))
	}, func(t *testing.T, h *kopftest.Harness) {
		expect := func(what string, want int) {
			t.Helper()
			h.Advance(15 * time.Minute)
			if running != want {
				t.Errorf("%s: %d daemons are running, want %d", what, running, want)
			}
		}
		blocked := h.Fail(kopftest.Requests{Verb: "patch", Resource: "kopfexamples/status"}, 0, errNoPermission)
		one := newExample()
		h.Create(one)
		expect("the object does not match", 0)
		h.Patch(one, `{"metadata": {"labels": {"watched": "yes"}}}`)
		expect("the object matches", 1)
		h.Patch(one, `{"metadata": {"annotations": {"kopf.zalando.org/request-suspend": "forever"}}}`)
		expect("the object is suspended", 0)
		h.Patch(one, `{"metadata": {"annotations": {"kopf.zalando.org/request-suspend": null}}}`)
		expect("the suspension has ended", 1)
		h.Patch(one, `{"metadata": {"labels": {"watched": null}}}`)
		expect("the object does not match anymore", 0)
		blocked.End()
		expect("the result can be stored", 0)
		h.Get(one)
		if result, _, _ := unstructured.NestedString(one.Object, "status", "create"); result != "done" || len(h.Calls("create")) != 1 {
			t.Errorf("got the result %q after the calls %v", result, h.Calls("create"))
		}
	})
}
