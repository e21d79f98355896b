package virtual

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/kopftest"
)

const kopfFinalizer = "kopf.zalando.org/KopfFinalizerMarker"

// selected is an operator for the examples with the label app=web. It notes what its handlers hear.
type selected struct {
	*kopftest.Harness
	t     *testing.T
	index *kopf.Index[string, string]

	mu     sync.Mutex
	heard  []string
	delete func() error  // what the deletion handler returns; nil for nothing
	linger time.Duration // how long the daemon takes to stop
}

func (s *selected) hear(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.heard = append(s.heard, what)
}

// expect lets a minute pass, and compares what was heard since the last call.
func (s *selected) expect(when string, want ...string) {
	s.t.Helper()
	s.Advance(time.Minute)
	s.mu.Lock()
	defer s.mu.Unlock()
	slices.Sort(s.heard)
	if !slices.Equal(s.heard, want) {
		s.t.Errorf("%s: got %q, want %q", when, s.heard, want)
	}
	s.heard = nil
}

// label gives the example the label, or takes it away.
func (s *selected) label(one *unstructured.Unstructured, app string) {
	s.t.Helper()
	s.Patch(one, `{"metadata":{"labels":{"app":`+app+`}}}`)
}

// hasFinalizer reports whether the example waits for the operator before it is deleted.
func (s *selected) hasFinalizer(one *unstructured.Unstructured) bool {
	s.t.Helper()
	return slices.Contains(s.Get(one).GetFinalizers(), kopfFinalizer)
}

// selectedExample returns an example with the label.
func selectedExample() *unstructured.Unstructured {
	one := newExample()
	one.SetLabels(map[string]string{"app": "web"})
	return one
}

// The values of the label.
const isWeb, isNothing = `"web"`, `null`

// withSelected runs a test of the operator. The handlers with the ids are declared: create, update, resume, delete, daemon,
// event, index.
func withSelected(t *testing.T, handlers []string, test func(t *testing.T, s *selected)) {
	t.Helper()
	s := &selected{}
	declare := map[string]func(r *kopf.Registry){
		"create": func(r *kopf.Registry) { r.OnCreate(examples, s.change("create"), kopf.ID("create")) },
		"update": func(r *kopf.Registry) { r.OnUpdate(examples, s.change("update"), kopf.ID("update")) },
		"resume": func(r *kopf.Registry) { r.OnResume(examples, s.change("resume"), kopf.ID("resume")) },
		"delete": func(r *kopf.Registry) {
			r.OnDelete(examples, func(context.Context, *kopf.Change) error {
				s.hear("delete")
				if s.delete != nil {
					return s.delete()
				}
				return nil
			}, kopf.ID("delete"))
		},
		"daemon": func(r *kopf.Registry) {
			r.Daemon(examples, func(_ context.Context, t *kopf.Task) error {
				s.hear("daemon started")
				<-t.Stopped()
				time.Sleep(s.linger)
				s.hear("daemon stopped: " + t.StopReason().String())
				return nil
			}, kopf.ID("daemon"))
		},
		"event": func(r *kopf.Registry) {
			r.OnEvent(examples, func(_ context.Context, e *kopf.WatchEvent) error {
				if e.Type() != "MODIFIED" {
					s.hear("event " + string(e.Type()))
				}
				return nil
			}, kopf.ID("event"))
		},
		"index": func(r *kopf.Registry) {
			s.index = kopf.NewIndex(r, examples, func(_ context.Context, i *kopf.Indexed) (map[string]string, error) {
				return map[string]string{i.Name(): i.Namespace()}, nil
			}, kopf.ID("index"))
		},
	}
	withOperator(t, func(r *kopf.Registry) {
		for _, id := range handlers {
			declare[id](r)
		}
	}, func(t *testing.T, h *kopftest.Harness) {
		s.Harness = h
		s.t = t
		test(t, s)
	}, kopftest.Settings(func(s *kopf.Settings) {
		s.Watching.LabelSelectors = map[string]string{"kopfexamples": "app=web"}
	}))
}

func (s *selected) change(id string) func(context.Context, *kopf.Change) error {
	return func(context.Context, *kopf.Change) error {
		s.hear(id)
		return nil
	}
}

// An object exists for the operator as long as it has the label. What the operator has stored on it remains, so that it
// is resumed when it is back.
func TestObjectIsHandledWhileItIsSelected(t *testing.T) {
	withSelected(t, []string{"create", "update", "resume", "delete", "daemon", "event", "index"}, func(t *testing.T, s *selected) {
		one := newExample()
		s.Create(one)
		s.expect("without the label")
		if s.hasFinalizer(one) || s.index.Len() > 0 {
			t.Errorf("it was handled: %v", s.Get(one))
		}

		s.label(one, isWeb)
		s.expect("with the label", "create", "daemon started", "event ADDED")
		if !s.hasFinalizer(one) || s.index.Len() != 1 {
			t.Errorf("it was not handled: %v", s.Get(one))
		}

		s.label(one, isNothing)
		s.expect("after the label was removed", "daemon stopped: mismatch|signaled")
		if s.hasFinalizer(one) || s.index.Len() > 0 {
			t.Errorf("it was not let go: %v", s.Get(one))
		}
		before := len(s.Writes())
		s.Patch(one, `{"spec":{"size":4}}`)
		s.expect("a change out of sight")

		s.label(one, isWeb)
		s.expect("with the label again", "daemon started", "event ADDED", "resume", "update")
		if !s.hasFinalizer(one) || s.index.Len() != 1 || len(s.Writes()) == before {
			t.Errorf("it was not handled: %v", s.Get(one))
		}
		s.label(one, isNothing)
		s.Settle()
		s.label(one, isWeb)
		s.expect("without a change", "daemon started", "daemon stopped: mismatch|signaled", "event ADDED", "resume")

		s.label(one, isNothing)
		s.expect("after the label was removed again", "daemon stopped: mismatch|signaled")
		s.Delete(one)
		s.expect("a deletion out of sight")
		if s.Exists(one) {
			t.Errorf("it is held: %v", s.Get(one))
		}
	})
}

// The end of an object in the watch is its deletion if it does not exist anymore.
func TestSelectedObjectIsDeleted(t *testing.T) {
	for name, handlers := range map[string][]string{"with a finalizer": {"delete", "daemon", "event", "index"}, "without a finalizer": {"create", "event", "index"}} {
		t.Run(name, func(t *testing.T) {
			withSelected(t, handlers, func(t *testing.T, s *selected) {
				one := selectedExample()
				s.Create(one)
				s.Advance(time.Minute)
				s.heard = nil
				s.Delete(one)
				want := []string{"event DELETED"}
				if slices.Contains(handlers, "delete") {
					want = []string{"daemon stopped: deleted|signaled", "delete", "event DELETED"}
				}
				s.expect("after the deletion", want...)
				if s.Exists(one) || s.index.Len() > 0 {
					t.Errorf("it is not gone: %v", s.index.Len())
				}
				s.Create(selectedExample())
				s.Advance(time.Minute)
				if !slices.Contains(s.heard, "event ADDED") || slices.Contains(s.heard, "resume") {
					t.Errorf("got %q for another object of the name", s.heard)
				}
			})
		})
	}
}

// While the API server cannot say whether the object exists, nothing is concluded.
func TestFateOfAnObjectIsFoundOutAfterAnOutage(t *testing.T) {
	for name, end := range map[string]struct {
		of   func(s *selected, one *unstructured.Unstructured)
		want []string
	}{
		"it was deleted":     {func(s *selected, one *unstructured.Unstructured) { s.Delete(one) }, []string{"event DELETED"}},
		"it is out of sight": {func(s *selected, one *unstructured.Unstructured) { s.label(one, isNothing) }, nil},
		"it is back meanwhile": {func(s *selected, one *unstructured.Unstructured) {
			s.label(one, isNothing)
			s.Settle()
			s.label(one, isWeb)
		}, []string{"event ADDED"}},
		"another one has its name": {func(s *selected, one *unstructured.Unstructured) {
			s.Delete(one)
			s.Settle()
			s.Create(selectedExample())
		}, []string{"create", "event ADDED", "event DELETED"}},
	} {
		t.Run(name, func(t *testing.T) {
			withSelected(t, []string{"create", "event"}, func(t *testing.T, s *selected) {
				one := selectedExample()
				s.Create(one)
				s.expect("at first", "create", "event ADDED")
				failure := s.Fail(kopftest.Requests{Verb: "list", Resource: "kopfexamples"}, 0, apierrors.NewInternalError(errors.New("out of order")))
				end.of(s, one)
				s.Advance(10 * time.Second)
				if slices.Contains(s.heard, "event DELETED") && name == "it was deleted" {
					t.Error("a deletion was concluded")
				}
				failure.End()
				s.expect(name, end.want...)
			})
		})
	}
}

// A deletion that has begun is finished, although the watch does not show the object anymore.
func TestDeletionIsFinishedOutOfSight(t *testing.T) {
	withSelected(t, []string{"create", "delete", "event"}, func(t *testing.T, s *selected) {
		one := selectedExample()
		s.Create(one)
		s.expect("at first", "create", "event ADDED")
		failing := true
		s.delete = func() error {
			if failing {
				return kopf.Temporary(errors.New("not yet"), 40*time.Second)
			}
			return nil
		}
		s.Delete(one)
		s.Settle()
		s.label(one, isNothing)
		s.expect("while the handler fails", "delete", "delete")
		if !s.hasFinalizer(one) {
			t.Errorf("it does not wait: %v", s.Get(one))
		}
		failing = false
		s.expect("when the handler succeeds", "delete")
		if s.Exists(one) {
			t.Errorf("it is held: %v", s.Get(one))
		}
		s.delete = nil
		s.Create(selectedExample())
		s.expect("another object of the name", "create", "event ADDED")
	})
}

// A person decides about a deletion that is held. No event says so.
func TestRequestIsHonoredOutOfSight(t *testing.T) {
	withSelected(t, []string{"delete"}, func(t *testing.T, s *selected) {
		one := selectedExample()
		s.Create(one)
		s.Settle()
		s.Patch(one, `{"metadata":{"annotations":{"kopf.zalando.org/request-suspend":"forever"}}}`)
		s.Settle()
		s.Delete(one)
		s.label(one, isNothing)
		s.expect("while it is suspended")
		if !s.hasFinalizer(one) {
			t.Error("it does not wait")
		}
		s.Patch(one, `{"metadata":{"annotations":{"kopf.zalando.org/request-suspend":null}}}`)
		s.expect("after that", "delete")
		if s.Exists(one) {
			t.Errorf("it is held: %v", s.Get(one))
		}
	})
}

// A suspended object is let go, too: nothing would show the end of the suspension.
func TestSuspendedObjectIsLetGo(t *testing.T) {
	withSelected(t, []string{"delete"}, func(t *testing.T, s *selected) {
		one := selectedExample()
		s.Create(one)
		s.Settle()
		s.Patch(one, `{"metadata":{"annotations":{"kopf.zalando.org/request-suspend":"forever"}}}`)
		s.Settle()
		s.label(one, isNothing)
		s.expect("out of sight")
		if s.hasFinalizer(one) {
			t.Error("it has the finalizer")
		}
	})
}

// The object is back before its daemon has returned. The daemon begins again after that.
func TestDaemonOfAnObjectThatIsBack(t *testing.T) {
	withSelected(t, []string{"daemon"}, func(t *testing.T, s *selected) {
		s.linger = 20 * time.Second
		one := selectedExample()
		s.Create(one)
		s.expect("at first", "daemon started")
		s.label(one, isNothing)
		s.Advance(10 * time.Second)
		if !s.hasFinalizer(one) {
			t.Error("the finalizer was removed before the daemon has ended")
		}
		s.label(one, isWeb)
		s.expect("back", "daemon started", "daemon stopped: mismatch|signaled")
		s.label(one, isNothing)
		s.expect("out of sight", "daemon stopped: mismatch|signaled")
		if s.hasFinalizer(one) {
			t.Error("it has the finalizer")
		}
	})
}

// What a daemon leaves at its end is written, before the object is forgotten.
func TestLastEditOfADaemonIsWritten(t *testing.T) {
	withOperator(t, func(r *kopf.Registry) {
		r.Daemon(examples, func(_ context.Context, d *kopf.Task) error {
			<-d.Stopped()
			d.Patch().Set(d.StopReason().String(), "status", "phase")
			return nil
		}, kopf.ID("daemon"))
	}, func(t *testing.T, h *kopftest.Harness) {
		one := selectedExample()
		h.Create(one)
		h.Settle()
		h.Patch(one, `{"metadata":{"labels":null}}`)
		h.Advance(time.Minute)
		read := h.Get(one).(*unstructured.Unstructured)
		phase, _, _ := unstructured.NestedString(read.Object, "status", "phase")
		if phase != "mismatch|signaled" || len(read.GetFinalizers()) > 0 {
			t.Errorf("got %v", read)
		}
	}, kopftest.Settings(func(s *kopf.Settings) {
		s.Watching.LabelSelectors = map[string]string{"kopfexamples": "app"}
	}))
}

// What happens while the watch is interrupted is found in the next list.
func TestObjectsVanishWhileTheWatchIsInterrupted(t *testing.T) {
	withSelected(t, []string{"create", "resume", "delete", "event"}, func(t *testing.T, s *selected) {
		leaves, goes := newExample(), newExample()
		goes.SetName("two")
		for _, one := range []*unstructured.Unstructured{leaves, goes} {
			one.SetLabels(map[string]string{"app": "web"})
			s.Create(one)
		}
		s.expect("at first", "create", "create", "event ADDED", "event ADDED")
		failure := s.Fail(kopftest.Requests{Verb: "watch", Resource: "kopfexamples"}, 0, errors.New("the connection is lost"))
		lists := s.Fail(kopftest.Requests{Verb: "list", Resource: "kopfexamples"}, 0, errors.New("the connection is lost"))
		s.APIServer().EndWatches()
		s.Settle()
		s.label(leaves, isNothing)
		s.Patch(goes, `{"metadata":{"finalizers":null}}`)
		s.Delete(goes)
		s.APIServer().Compact()
		s.Advance(time.Minute)
		failure.End()
		lists.End()
		s.expect("after the interruption", "event DELETED")
		if s.hasFinalizer(leaves) {
			t.Error("it has the finalizer")
		}
	})
}

// A process that ends does not see that an object leaves. The finalizer remains until the object is back, or removed
// by a person.
func TestObjectLeavesWhileNoOperatorRuns(t *testing.T) {
	withSelected(t, []string{"create", "resume", "delete", "event"}, func(t *testing.T, s *selected) {
		one := selectedExample()
		s.Create(one)
		s.expect("at first", "create", "event ADDED")
		s.Stop()
		s.label(one, isNothing)
		s.Start()
		s.expect("after the start")
		if !s.hasFinalizer(one) {
			t.Error("an operator with other selectors can need the finalizer")
		}
		s.label(one, isWeb)
		s.expect("back", "event ADDED", "resume")
	})
}

// A handler that runs ends, and its outcome is stored.
func TestOutcomeIsStoredOutOfSight(t *testing.T) {
	withOperator(t, func(r *kopf.Registry) {
		r.OnCreate(examples, func(_ context.Context, c *kopf.Change) error {
			time.Sleep(20 * time.Second)
			c.Patch().Set("done", "status", "phase")
			return nil
		}, kopf.ID("create"))
		r.OnDelete(examples, func(context.Context, *kopf.Change) error { return nil }, kopf.ID("delete"))
	}, func(t *testing.T, h *kopftest.Harness) {
		one := selectedExample()
		h.Create(one)
		h.Advance(10 * time.Second)
		h.Patch(one, `{"metadata":{"labels":null}}`)
		h.Advance(time.Minute)
		read := h.Get(one).(*unstructured.Unstructured)
		phase, _, _ := unstructured.NestedString(read.Object, "status", "phase")
		if phase != "done" || slices.Contains(read.GetFinalizers(), kopfFinalizer) || read.GetAnnotations()["kopf.zalando.org/last-handled-configuration"] == "" {
			t.Errorf("got %v", read)
		}
		h.Patch(one, `{"metadata":{"labels":{"app":"web"}}}`)
		h.Advance(time.Minute)
		if calls := h.Calls("create"); len(calls) != 1 {
			t.Errorf("got %v", calls)
		}
	}, kopftest.Settings(func(s *kopf.Settings) {
		s.Watching.LabelSelectors = map[string]string{"kopf.dev/v1/kopfexamples": "app", "*": "app!=db"}
	}))
}

// The children of a handler of children can have selectors. One that is out of sight was moved.
func TestChildrenAreSelected(t *testing.T) {
	var mu sync.Mutex
	var heard []string
	withOperator(t, func(r *kopf.Registry) {
		r.OnChild(examples, kopf.Resource("v1", "configmaps"), func(_ context.Context, c *kopf.ChildChange) error {
			mu.Lock()
			defer mu.Unlock()
			if child := c.Child(); child != nil {
				heard = append(heard, fmt.Sprintf("%s %s moved=%t of %d", c.Reason(), child.Name(), c.Moved(), len(c.Children())))
			}
			return nil
		}, kopf.ID("child"), kopf.ChildLabel("example.com/parent"))
	}, func(t *testing.T, h *kopftest.Harness) {
		expect := func(when string, want ...string) {
			t.Helper()
			h.Advance(time.Minute)
			mu.Lock()
			defer mu.Unlock()
			if !slices.Equal(heard, want) {
				t.Errorf("%s: got %q, want %q", when, heard, want)
			}
			heard = nil
		}
		parent := newExample()
		h.Create(parent)
		h.Settle()
		child, other := newTheme(), themeNamed("other")
		child.Labels = map[string]string{"example.com/parent": string(h.Get(parent).GetUID())}
		h.Create(child)
		expect("not selected")
		h.Patch(child, `{"metadata":{"labels":{"app":"web"}}}`)
		expect("selected", "create theme moved=false of 1")
		h.Patch(child, `{"metadata":{"labels":{"app":null}}}`)
		expect("out of sight", "delete theme moved=true of 0")
		h.Patch(child, `{"metadata":{"labels":{"app":"web"}}}`)
		expect("back", "create theme moved=false of 1")
		h.Delete(child)
		expect("deleted", "delete theme moved=false of 0")
		other.Labels = map[string]string{"app": "web"} // it has no parent
		h.Create(other)
		before := len(h.Writes())
		h.Patch(other, `{"metadata":{"labels":{"app":null}}}`)
		expect("another object")
		if writes := len(h.Writes()); writes != before {
			t.Errorf("got %d writes", writes-before)
		}
	}, kopftest.Settings(func(s *kopf.Settings) {
		s.Watching.LabelSelectors = map[string]string{"configmaps": "app=web"}
	}))
}

// A child is deleted, and another one of its name is created, before the operator has found out about the first one.
func TestSelectedChildIsReplaced(t *testing.T) {
	var mu sync.Mutex
	var heard []string
	withOperator(t, func(r *kopf.Registry) {
		r.OnChild(examples, kopf.Resource("v1", "configmaps"), func(_ context.Context, c *kopf.ChildChange) error {
			mu.Lock()
			defer mu.Unlock()
			if child := c.Child(); child != nil {
				heard = append(heard, fmt.Sprintf("%s moved=%t", c.Reason(), c.Moved()))
			}
			return nil
		}, kopf.ID("child"), kopf.ChildLabel("example.com/parent"))
	}, func(t *testing.T, h *kopftest.Harness) {
		h.Create(newExample())
		h.Settle()
		newChild := func() *corev1.ConfigMap {
			child := newTheme()
			child.Labels = map[string]string{"app": "web", "example.com/parent": string(h.Get(newExample()).GetUID())}
			return child
		}
		h.Create(newChild())
		h.Advance(time.Minute)
		failure := h.Fail(kopftest.Requests{Verb: "list", Resource: "configmaps"}, 0, apierrors.NewInternalError(errors.New("out of order")))
		h.Delete(newTheme())
		h.Advance(time.Second)
		h.Create(newChild())
		h.Advance(time.Second)
		failure.End()
		h.Advance(time.Minute)
		mu.Lock()
		defer mu.Unlock()
		if want := []string{"create moved=false", "delete moved=false", "create moved=false"}; !slices.Equal(heard, want) {
			t.Errorf("got %q, want %q", heard, want)
		}
	}, kopftest.Settings(func(s *kopf.Settings) {
		s.Watching.LabelSelectors = map[string]string{"configmaps": "app=web"}
	}))
}

// The children that the operator keeps have a label of their own, by which they are watched.
func TestKeptChildrenNeedNoSelector(t *testing.T) {
	withOperator(t, func(r *kopf.Registry) {
		r.Ensure(examples, theme, kopf.ID("children"))
	}, func(t *testing.T, h *kopftest.Harness) {
		h.Create(newExample())
		h.Advance(time.Minute)
		h.Delete(newTheme())
		h.Advance(time.Minute)
		if !h.Exists(newTheme()) {
			t.Error("the child was not restored")
		}
		if lines := linesWith(h, unusedSelector); len(lines) != 1 || lines[0].Values["selector"] != "configmaps" {
			t.Errorf("got %v", lines)
		}
	}, kopftest.Settings(func(s *kopf.Settings) {
		s.Watching.LabelSelectors = map[string]string{"configmaps": "app=web"}
	}))
}

const unusedSelector = "A selector in the settings is for no resource with handlers, and has no effect: compare settings.Watching.LabelSelectors and FieldSelectors with the resources of the handlers."

// The API server knows only some fields. A field that it does not know holds up no other resource, and is said once.
func TestUnknownFieldOfASelectorHoldsUpNoOther(t *testing.T) {
	var began time.Time
	withOperator(t, func(r *kopf.Registry) {
		r.OnCreate(examples, func(context.Context, *kopf.Change) error { return nil }, kopf.ID("example"))
		r.OnCreate(kopf.Resource("v1", "configmaps"), func(context.Context, *kopf.Change) error { return nil }, kopf.ID("theme"))
		began = time.Now()
	}, func(t *testing.T, h *kopftest.Harness) {
		if took := time.Since(began); took > time.Second {
			t.Errorf("the start took %s", took)
		}
		h.Create(newExample())
		h.Create(newTheme())
		h.Create(themeNamed("other"))
		h.Advance(5 * time.Minute)
		if calls := h.Calls(); len(calls) != 1 || calls[0].Handler != "theme" {
			t.Errorf("got the calls %v", calls)
		}
		const refused = "The API server refuses the selectors for the objects, so none is watched or handled; this is retried. " +
			"It knows only some fields of each resource: of custom resources, those in selectableFields of the definition, and the name and the namespace. " +
			"Correct settings.Watching.FieldSelectors and LabelSelectors, or select by labels."
		lines := linesWith(h, refused)
		if len(lines) != 1 || lines[0].Values["fieldSelector"] != "spec.color=blue" || lines[0].Values["resource"] != "kopfexamples.v1.kopf.dev" {
			t.Errorf("got %v", lines)
		}
		if lines := linesWith(h, waitsForLists); len(lines) > 0 {
			t.Errorf("got %v", lines)
		}
		if lines := linesWith(h, unusedSelector); len(lines) != 1 || lines[0].Values["selector"] != "pods" {
			t.Errorf("got %v", lines)
		}
		state := h.Operator().State()
		for _, w := range state.Watches {
			if isRefused := w.Resource == "kopfexamples.v1.kopf.dev"; w.Listed == isRefused || apierrors.IsBadRequest(w.Err) != isRefused {
				t.Errorf("got the watch %+v", w)
			}
		}
		if !state.Ready {
			t.Errorf("got %+v", state)
		}
	}, kopftest.Settings(func(s *kopf.Settings) {
		s.Watching.FieldSelectors = map[string]string{"kopfexamples": "spec.color=blue", "configmaps": "metadata.name=theme", "pods": "spec.nodeName=a"}
	}))
}
