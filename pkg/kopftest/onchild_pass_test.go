package kopftest_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/kopftest"
)

// Calls for children belong to no cycle, so they hold up none.
func TestAFailingCallDoesNotHoldUpTheParent(t *testing.T) {
	w, sizes := &told{failure: errors.New("no")}, []string{}
	declare := func(r *kopf.Registry) {
		r.OnChild(examples, ofConfigMaps, w.handle, kopf.ID("tell"))
		resize := func(_ context.Context, c *kopf.Change) error {
			sizes = append(sizes, c.Diff().String())
			return nil
		}
		r.OnCreate(examples, resize, kopf.ID("resize"))
		r.OnUpdate(examples, resize, kopf.ID("resize"))
	}
	inVirtualTime(t, declare, func(t *testing.T, h *kopftest.Harness) {
		one := example("one")
		h.Create(one)
		h.Settle()
		h.Create(childOf(one, "a", "1"))
		for size := range 3 {
			h.Patch(one, fmt.Sprintf(`{"spec": {"size": %d}}`, 10+size))
			h.Settle()
		}
		if len(sizes) != 4 || !strings.HasSuffix(sizes[3], "11 -> 12") {
			t.Errorf("got %q", sizes)
		}
		if record := recordOf(h, one); !strings.Contains(record, `"retries":1`) {
			t.Errorf("got %q", record)
		}
		w.failure = nil
		h.Advance(time.Minute)
		if len(sizes) != 4 || recordOf(h, one) != "" {
			t.Errorf("got %q, %s", sizes, recordOf(h, one))
		}
	}, kopftest.Settings(withName))
}

func TestAParentThatIsDeletedHasNoCallsUnlessWanted(t *testing.T) {
	for want, options := range map[int][]kopf.ChildOption{0: nil, 1: {kopf.Deleted()}} {
		withChildren(t, func(t *testing.T, h *kopftest.Harness, w *told) {
			one := example("one")
			one.SetFinalizers([]string{"example.com/hold"})
			h.Create(one)
			h.Settle()
			h.Delete(one)
			h.Settle()
			h.Create(childOf(one, "a", "1"))
			h.Settle()
			if len(w.lines) != want {
				t.Errorf("got %q, want %d calls", w.lines, want)
			}
		}, options...)
	}
}

// A handler that begins to match is told about all children, and one that does not match anymore
// leaves no record.
func TestFiltersAreAboutTheParent(t *testing.T) {
	matching := kopf.Labels(map[string]kopf.Matcher{"told": kopf.Equal("yes")})
	withChildren(t, func(t *testing.T, h *kopftest.Harness, w *told) {
		one := example("one")
		h.Create(one)
		h.Create(childOf(one, "a", "1"))
		h.Settle()
		w.expect(t)
		w.failure = errors.New("no")
		h.Patch(one, `{"metadata": {"labels": {"told": "yes"}}}`)
		h.Settle()
		if len(w.lines) != 1 || !strings.HasPrefix(w.lines[0], "one create a ") || recordOf(h, one) == "" {
			t.Errorf("got %q, %q", w.lines, recordOf(h, one))
		}
		h.Patch(one, `{"metadata": {"labels": {"told": null}}}`)
		h.Settle()
		if got := recordOf(h, one); got != "" {
			t.Errorf("got %q", got)
		}
		h.Advance(time.Hour)
		if len(w.lines) != 1 {
			t.Errorf("got %q", w.lines)
		}
	}, matching)
}

func TestACallIsGivenUp(t *testing.T) {
	withChildren(t, func(t *testing.T, h *kopftest.Harness, w *told) {
		one := example("one")
		h.Create(one)
		h.Settle()
		w.failure = errors.New("no")
		child := childOf(one, "a", "1")
		h.Create(child)
		h.Advance(time.Hour)
		if len(w.lines) != 2 || recordOf(h, one) != "" {
			t.Errorf("got %q, %q", w.lines, recordOf(h, one))
		}
		var reasons []string
		for _, e := range h.Events() {
			reasons = append(reasons, e.Reason)
		}
		if got := strings.Join(reasons, " "); got != "HandlerRetrying HandlerFailed" {
			t.Errorf("got %s", got)
		}
		w.lines = nil
		child.Data["value"] = "2"
		h.Update(child)
		h.Settle()
		w.expect(t, `one update a change data.value: "1" -> "2" of [a]`)
	}, kopf.Retries(2))
}

// One parent with many calls must not keep its own handlers waiting.
func TestManyCallsTakeTurnsWithTheParent(t *testing.T) {
	var order []string
	declare := func(r *kopf.Registry) {
		r.OnChild(examples, ofConfigMaps, func(_ context.Context, c *kopf.ChildChange) error {
			order = append(order, c.Child().Name())
			time.Sleep(400 * time.Millisecond)
			return nil
		}, kopf.ID("slow"))
		r.OnField(examples, "spec.size", func(_ context.Context, c *kopf.Change) error {
			order = append(order, "size")
			return nil
		}, kopf.ID("resize"))
	}
	inVirtualTime(t, declare, func(t *testing.T, h *kopftest.Harness) {
		one := example("one")
		h.Create(one)
		h.Settle()
		order = nil
		for i := range 10 {
			h.Create(childOf(one, fmt.Sprint("child-", i), "1"))
		}
		h.Patch(one, `{"spec": {"size": 2}}`)
		h.Advance(10 * time.Second)
		if len(order) != 11 || order[10] == "size" {
			t.Errorf("got %v", order)
		}
	}, kopftest.Settings(withName))
}

func TestLimitsApplyToCallsForChildren(t *testing.T) {
	running, most := 0, 0
	declare := func(r *kopf.Registry) {
		r.OnChild(examples, ofConfigMaps, func(context.Context, *kopf.ChildChange) error {
			running++
			most = max(most, running)
			time.Sleep(time.Second)
			running--
			return nil
		}, kopf.ID("slow"), kopf.Limit(1))
	}
	inVirtualTime(t, declare, func(t *testing.T, h *kopftest.Harness) {
		for i := range 3 {
			parent := example(fmt.Sprint("parent-", i))
			h.Create(parent)
			h.Create(childOf(parent, fmt.Sprint("child-", i), "1"))
		}
		h.Advance(5 * time.Second)
		if got := len(h.Calls()); got != 3 || most != 1 {
			t.Errorf("%d calls, %d at the same time", got, most)
		}
	}, kopftest.Settings(withName))
}

func TestSuspendedParentsAreToldLater(t *testing.T) {
	withChildren(t, func(t *testing.T, h *kopftest.Harness, w *told) {
		one := example("one")
		h.Create(one)
		child := childOf(one, "a", "1")
		h.Create(child)
		h.Settle()
		h.Patch(one, `{"metadata": {"annotations": {"kopf.zalando.org/request-suspend": "forever"}}}`)
		h.Settle()
		w.lines = nil
		child.Data["value"] = "2"
		h.Update(child)
		h.Settle()
		w.expect(t)
		h.Patch(one, `{"metadata": {"annotations": {"kopf.zalando.org/request-suspend": null}}}`)
		h.Settle()
		w.expect(t, `one update a change data.value: "1" -> "2" of [a]`)
	})
}

func TestAnOperatorWithoutANameDoesNotStart(t *testing.T) {
	nothing := func(context.Context, *kopf.Change) ([]client.Object, error) { return nil, nil }
	for declared, declare := range map[string]func(*kopf.Registry){
		`the child handler "tell"`: func(r *kopf.Registry) { r.OnChild(examples, ofConfigMaps, (&told{}).handle, kopf.ID("tell")) },
		`kopf.Ensure "children"`:   func(r *kopf.Registry) { r.Ensure(examples, nothing, kopf.ID("children")) },
	} {
		synctest.Test(t, func(t *testing.T) {
			r := kopf.NewRegistry()
			declare(r)
			server := kopftest.NewAPIServer(t)
			err := kopf.Run(t.Context(), kopf.Options{Registry: r, Config: server.Config()})
			if err == nil || !strings.Contains(err.Error(), ": "+declared+" needs ") || !strings.Contains(err.Error(), "set settings.Name") || !strings.Contains(err.Error(), "onchild_pass_test.go:") {
				t.Errorf("got %v", err)
			}
		})
	}
}

// A patch that cannot be computed is an error of its call, which is made again.
func TestAFailedPatchRepeatsTheCall(t *testing.T) {
	attempts := 0
	declare := func(r *kopf.Registry) {
		r.OnChild(examples, ofConfigMaps, func(_ context.Context, c *kopf.ChildChange) error {
			attempts++
			c.Patch().Apply(func(u *unstructured.Unstructured) error {
				if attempts == 1 {
					return errors.New("not yet")
				}
				u.SetLabels(map[string]string{"children": fmt.Sprint(len(c.Children()))})
				return nil
			})
			return nil
		}, kopf.ID("tell"))
	}
	inVirtualTime(t, declare, func(t *testing.T, h *kopftest.Harness) {
		one := example("one")
		h.Create(one)
		h.Settle()
		h.Create(childOf(one, "a", "1"))
		h.Settle()
		if record := recordOf(h, one); attempts != 1 || !strings.Contains(record, "not yet") {
			t.Errorf("got %s after %d attempts", record, attempts)
		}
		h.Advance(time.Minute)
		h.Get(one)
		if attempts != 2 || one.GetLabels()["children"] != "1" || recordOf(h, one) != "" {
			t.Errorf("got %v, %q after %d attempts", one.GetLabels(), recordOf(h, one), attempts)
		}
	}, kopftest.Settings(withName))
}

// Objects can be handled themselves, and be children.
func TestAHandledObjectCanBeAChild(t *testing.T) {
	w, created := &told{}, 0
	declare := func(r *kopf.Registry) {
		r.OnChild(examples, ofConfigMaps, w.handle, kopf.ID("tell"))
		r.OnCreate(ofConfigMaps, func(context.Context, *kopf.Change) error { created++; return nil }, kopf.ID("create"))
	}
	inVirtualTime(t, declare, func(t *testing.T, h *kopftest.Harness) {
		one := example("one")
		h.Create(one)
		h.Settle()
		h.Create(childOf(one, "a", "1"))
		h.Settle()
		watches := h.Operator().State().Watches
		if created != 1 || len(w.lines) == 0 || len(watches) != 2 {
			t.Errorf("%d creations, calls %q, %d watches", created, w.lines, len(watches))
		}
	}, kopftest.Settings(withName))
}

// Parents and children can both be Go objects.
func TestParentsAndChildrenHaveGoTypes(t *testing.T) {
	var nodes []string
	declare := func(r *kopf.Registry) {
		kopf.OnChildOf(r, func(_ context.Context, pod *corev1.Pod, child *corev1.ConfigMap, _ *kopf.ChildChange) error {
			nodes = append(nodes, pod.Spec.NodeName+" "+child.Name)
			return nil
		}, kopf.ID("tell"), kopf.ChildLabel("example.com/pod"))
	}
	inVirtualTime(t, declare, func(t *testing.T, h *kopftest.Harness) {
		pod := &corev1.Pod{}
		pod.Name, pod.Namespace, pod.Spec.NodeName = "pod", "ns", "n1"
		pod.Spec.Containers = []corev1.Container{{Name: "main", Image: "main"}}
		h.Create(pod)
		h.Settle()
		child := &corev1.ConfigMap{}
		child.Name, child.Namespace, child.Labels = "a", "ns", map[string]string{"example.com/pod": string(pod.UID)}
		h.Create(child)
		h.Settle()
		if len(nodes) != 1 || nodes[0] != "n1 a" {
			t.Errorf("got %q", nodes)
		}
	}, kopftest.Settings(withName))
}

// The parent counts its children with each call, which fails once, and is recorded. Whatever
// write fails, the count is right in the end.
func TestCallsForChildrenSurviveAllFaults(t *testing.T) {
	kopftest.Sweep(t, func(t *testing.T, fault kopftest.Option) {
		failed := map[string]bool{}
		declare := declaring(func(r *kopf.Registry) {
			r.OnChild(examples, ofConfigMaps, func(_ context.Context, c *kopf.ChildChange) error {
				if !c.Initial() && !failed[c.Child().Name()] {
					failed[c.Child().Name()] = true
					return kopf.Temporary(errors.New("not yet"), time.Second)
				}
				c.Patch().Set(len(c.Children()), "status", "children")
				return nil
			}, kopf.ID("count"))
			r.OnCreate(examples, func(context.Context, *kopf.Change) error { return nil }, kopf.ID("create"))
		})
		h := kopftest.New(t, declare, fault, kopftest.CRDs(crds), kopftest.Settings(withName))
		one := example("one")
		h.Create(one)
		h.Settle()
		a := childOf(one, "a", "1")
		h.Create(a)
		h.Create(childOf(one, "b", "1"))
		h.Advance(5 * time.Second)
		h.Delete(a)
		h.Advance(time.Minute)
		h.Get(one)
		if record, found := one.GetAnnotations()["kopf.zalando.org/count"]; found {
			t.Errorf("the record is still there: %s", record)
		}
	})
}
