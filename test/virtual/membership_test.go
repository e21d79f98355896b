package virtual

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/kopftest"
	"github.com/kopf-go/kopf/pkg/model/convergence"
)

// controlledBy returns the reference to a config map as the controller.
func controlledBy(owner *corev1.ConfigMap) []metav1.OwnerReference {
	return []metav1.OwnerReference{*metav1.NewControllerRef(owner, corev1.SchemeGroupVersion.WithKind("ConfigMap"))}
}

// themeNamed returns a config map without its content.
func themeNamed(name string) *corev1.ConfigMap {
	child := newTheme()
	child.Name = name
	return child
}

// writesTo counts the writes to a config map since the n-th write.
func writesTo(h *kopftest.Harness, name string, n int) (count int) {
	for _, write := range h.Writes()[n:] {
		if strings.HasSuffix(write.Object, "configmaps default/"+name) {
			count++
		}
	}
	return count
}

// messages returns the messages of the events with a reason.
func messages(h *kopftest.Harness, reason string) (all []string) {
	for _, event := range h.Events() {
		if event.Reason == reason {
			all = append(all, event.Message)
		}
	}
	return all
}

// A label in the place of ours does not change the owner of a child.
func TestChangedLabelIsRestored(t *testing.T) {
	withOperator(t, func(r *kopf.Registry) {
		r.Ensure(examples, theme, kopf.ID("children"))
	}, func(t *testing.T, h *kopftest.Harness) {
		h.Create(newExample())
		h.Advance(time.Minute)
		child := newTheme()
		h.Get(child)
		label := child.Labels[convergence.OwnerLabel]
		before := len(h.Writes())
		h.Patch(child, `{"metadata": {"labels": {"`+convergence.OwnerLabel+`": "0123456789abcdef"}}, "data": {"color": "red"}}`)
		h.Advance(time.Minute)
		if h.Get(child); child.Labels[convergence.OwnerLabel] != label || child.Data["color"] != "blue" {
			t.Errorf("got %v with the label %q, want %q", child.Data, child.Labels[convergence.OwnerLabel], label)
		}
		if writes := h.Writes()[before:]; len(writes) != 1 {
			t.Errorf("got the writes %v", writes)
		}
	})
}

// A child that gets another controller is left to it, whether it is wanted or not, until that
// lets it go.
func TestChildWithAnotherControllerIsLeftAlone(t *testing.T) {
	withOperator(t, func(r *kopf.Registry) {
		r.Ensure(examples, func(ctx context.Context, c *kopf.Change) ([]client.Object, error) {
			if size, _ := c.Spec().Int64("size"); size == 0 {
				return []client.Object{themeNamed("other")}, nil
			}
			return theme(ctx, c)
		}, kopf.ID("children"), kopf.Backoff(time.Minute))
	}, func(t *testing.T, h *kopftest.Harness) {
		one, owner, child := newExample(), themeNamed("owner"), newTheme()
		h.Create(one)
		h.Create(owner)
		h.Advance(time.Minute)
		before := len(h.Writes())

		h.Get(child)
		ours := child.OwnerReferences
		child.OwnerReferences, child.Data["color"] = controlledBy(owner), "red"
		h.Update(child)
		h.Advance(5 * time.Minute)
		if h.Get(child); child.Data["color"] != "red" || child.OwnerReferences[0].UID != owner.UID || writesTo(h, "theme", before) > 0 {
			t.Errorf("got %v of %v after %v", child.Data, child.OwnerReferences, h.Writes()[before:])
		}
		told := messages(h, "HandlerRetrying")
		if len(told) == 0 || !strings.Contains(told[0], "the child ConfigMap default/theme: the object belongs to another controller, ConfigMap owner (uid ") || !strings.Contains(told[0], "); it was not changed for KopfExample.kopf.dev default/one (uid ") || !strings.HasSuffix(told[0], "delete it: kubectl delete configmaps theme -n default") {
			t.Errorf("got the events %q", told)
		}

		h.Patch(child, `{"metadata": {"ownerReferences": null}}`)
		h.Advance(5 * time.Minute)
		if h.Get(child); child.Data["color"] != "blue" || len(child.OwnerReferences) != 1 || child.OwnerReferences[0].UID != ours[0].UID {
			t.Errorf("got %v of %v", child.Data, child.OwnerReferences)
		}

		child.OwnerReferences = controlledBy(owner)
		h.Update(child)
		h.Patch(one, `{"spec": {"size": 0}}`)
		h.Advance(5 * time.Minute)
		if !h.Exists(child) || !h.Exists(themeNamed("other")) {
			t.Error("a child of another controller was deleted, or the new one was not created")
		}
	})
}

func TestTwoHandlersCannotHaveOneChild(t *testing.T) {
	withOperator(t, func(r *kopf.Registry) {
		r.Ensure(examples, theme, kopf.ID("children"))
		r.Ensure(examples, func(context.Context, *kopf.Change) ([]client.Object, error) {
			same := newTheme()
			same.Data = map[string]string{"color": "red"}
			return []client.Object{same, themeNamed("more")}, nil
		}, kopf.ID("more"), kopf.Retries(3), kopf.Backoff(time.Second))
	}, func(t *testing.T, h *kopftest.Harness) {
		one, child := newExample(), newTheme()
		h.Create(one)
		h.Advance(time.Minute)
		if h.Get(child); child.Data["color"] != "blue" || writesTo(h, "theme", 0) > 2 { // the second handler finds out at most once
			t.Errorf("got %v after %v", child.Data, h.Writes())
		}
		if !h.Exists(themeNamed("more")) {
			t.Error("the other child of the second handler is missing")
		}
		told := messages(h, "HandlerFailed")
		if len(told) != 1 || !strings.Contains(told[0], `belongs to the handler "children" of the same parent; it was not changed for KopfExample.kopf.dev `) || !strings.HasSuffix(told[0], "return it in one of the two handlers only") {
			t.Errorf("got the events %q", told)
		}
		before := len(h.Writes())
		h.Advance(time.Hour)
		if writes := h.Writes()[before:]; len(writes) > 0 {
			t.Errorf("at rest, the handlers write %v", writes)
		}
	})
}

// The operator is killed after it has applied the children, and before it has recorded that. Its
// successor has another function.
func TestCrashBetweenApplyAndRecordWithAnotherFunction(t *testing.T) {
	successor := false
	withOperator(t, func(r *kopf.Registry) {
		r.Ensure(examples, func(_ context.Context, c *kopf.Change) ([]client.Object, error) {
			if successor {
				return []client.Object{themeNamed("new"), themeNamed("both")}, nil
			}
			return []client.Object{themeNamed("old"), themeNamed("both")}, nil
		}, kopf.ID("children"))
		r.OnCreate(examples, func(ctx context.Context, _ *kopf.Change) error {
			if !successor {
				<-ctx.Done() // what the other handler has done is not recorded before this ends
			}
			return ctx.Err()
		}, kopf.ID("waiting"))
	}, func(t *testing.T, h *kopftest.Harness) {
		one := newExample()
		h.Create(one)
		h.Settle()
		if h.Get(one); !h.Exists(themeNamed("old")) || hasRecord(one.GetAnnotations()) {
			t.Fatalf("before the crash: %v", one.GetAnnotations())
		}
		successor = true
		h.Crash()
		h.Advance(time.Minute)
		if h.Exists(themeNamed("old")) || !h.Exists(themeNamed("new")) || !h.Exists(themeNamed("both")) {
			t.Errorf("the children are not those of the successor: %v", h.Writes())
		}
		if h.Get(one); one.GetAnnotations()["kopf.zalando.org/last-handled-configuration"] == "" {
			t.Errorf("the creation is not finished: %v", one.GetAnnotations())
		}
	})
}

// hasRecord reports whether a success or the end of the creation is recorded.
func hasRecord(annotations map[string]string) bool {
	return strings.Contains(annotations["kopf.zalando.org/children"], `"success":true`) || annotations["kopf.zalando.org/last-handled-configuration"] != ""
}

// A limit of Ensure is also one of the decisions about drift, which are a part of its attempts.
func TestLimitOfEnsure(t *testing.T) {
	var ensured, decided places
	withOperator(t, func(r *kopf.Registry) {
		r.Ensure(examples, func(_ context.Context, c *kopf.Change) ([]client.Object, error) {
			ensured.occupy()
			child := themeNamed(c.Name())
			child.Data = map[string]string{"color": "blue"}
			return []client.Object{child}, nil
		}, kopf.ID("children"), kopf.Limit(2))
		r.OnDrift(examples, func(context.Context, *kopf.Drift) (kopf.Resolution, error) {
			decided.occupy()
			return kopf.RestoreDrift(), nil
		}, kopf.ID("drift"))
	}, func(t *testing.T, h *kopftest.Harness) {
		const parents = 6
		for i := range parents {
			h.Create(exampleNamed(fmt.Sprint("shop-", i)))
		}
		h.Advance(time.Minute)
		if calls, most := ensured.counts(); calls != parents || most != 2 {
			t.Errorf("%d calls, %d at the same time", calls, most)
		}
		for i := range parents {
			h.Patch(themeNamed(fmt.Sprint("shop-", i)), `{"data": {"color": "red"}}`)
		}
		h.Advance(time.Minute)
		_, most := ensured.counts()
		decisions, mostDecisions := decided.counts()
		if most != 2 || mostDecisions != 2 || decisions != parents {
			t.Errorf("%d and %d at the same time, %d decisions", most, mostDecisions, decisions)
		}
		for i := range parents {
			child := themeNamed(fmt.Sprint("shop-", i))
			if h.Get(child); child.Data["color"] != "blue" {
				t.Errorf("%s has %v", child.Name, child.Data)
			}
		}
	})
}

// places are those of a handler that is limited.
type places struct {
	mu                   sync.Mutex
	calls, running, most int
}

// occupy takes a place for a second of virtual time.
func (p *places) occupy() {
	p.enter()
	time.Sleep(time.Second)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.running--
}

func (p *places) enter() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls++
	p.running++
	p.most = max(p.most, p.running)
}

// counts returns the number of calls, and how many have run at the same time.
func (p *places) counts() (calls, most int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.calls, p.most
}
