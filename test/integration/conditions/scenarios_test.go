package conditions

import (
	"context"
	"testing"
	"time"

	"github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/storage"
)

// done begins with an object whose handler fn has succeeded.
func (s *scene) done() {
	s.t.Helper()
	s.onChange("fn")
	s.begin()
	s.reply("fn", nil)
	s.expect(isReady)
	s.expectWrites(1, 1)
}

// ensuresLabeled declares a function of children for objects with a label, and handlers for all.
func (s *scene) ensuresLabeled() {
	fn := s.waiting("ensure")
	s.Ensure(widgets, func(ctx context.Context, c *kopf.Change) ([]client.Object, error) { return nil, fn(ctx, c) },
		kopf.ID("ensure"), kopf.Labels(map[string]kopf.Matcher{"ensured": kopf.Present()}))
	s.OnUpdate(widgets, s.waiting("update"), kopf.ID("update"))
	s.OnDelete(widgets, s.waiting("delete"), kopf.ID("delete"))
	s.adjust = append(s.adjust, func(o *kopf.Options) { o.Settings.Name = "conditions" })
}

// What the condition Ready says.
const (
	finished = "True Reconciled: The handlers have finished."
	spared   = "True NoHandlerApplies: No handler applies to this object now."
)

const resized = `{"spec":{"size":2}}`

// In each scenario, kubectl wait and kstatus must agree with what the handlers have come to.
func TestVerdictsAgreeWithHandlers(t *testing.T) {
	scenarios := map[string]func(s *scene){
		"a new object": func(s *scene) {
			s.onChange("fn")
			s.begin()
			s.await("fn")
			s.expect(isWorking)
			s.answer("fn", nil)
			s.expect(isReady)
			s.Expect(s.condition("Ready")).To(gomega.Equal(finished))
		},
		"an object that existed before the operator": func(s *scene) {
			s.onChange("fn")
			s.create()
			s.expect(isWorking)
			s.start()
			s.reply("fn", nil)
			s.expect(isReady)
		},
		"an update": func(s *scene) {
			s.done()
			s.patch(resized)
			s.expect(isWorking)
			s.reply("fn", nil)
			s.expect(isReady)
		},
		"an ignored field changes": func(s *scene) {
			s.adjust = append(s.adjust, func(o *kopf.Options) {
				o.Settings.Persistence.DiffBase = storage.AnnotationsDiffBase{IgnoredFields: []object.Path{{"spec", "note"}}}
			})
			s.done()
			s.patch(`{"spec":{"note":"x"}}`)
			s.expect(isReady)
			s.expectWrites(0, 1)
			s.Expect(s.current().GetGeneration()).To(gomega.Equal(int64(2)))
		},
		"an ignored field changes while no operator runs": func(s *scene) {
			s.adjust = append(s.adjust, func(o *kopf.Options) {
				o.Settings.Persistence.DiffBase = storage.AnnotationsDiffBase{IgnoredFields: []object.Path{{"spec", "note"}}}
			})
			s.done()
			s.operator.Stop()
			s.patch(`{"spec":{"note":"x"}}`)
			s.expect(isWorking)
			s.start()
			s.expect(isReady)
		},
		"a field changes that no handler is concerned with": func(s *scene) {
			s.OnField(widgets, "spec.size", s.waiting("size"), kopf.ID("size"))
			s.begin()
			s.reply("size", nil)
			s.expect(isReady)
			s.expectWrites(1, 1)
			s.patch(`{"spec":{"color":"red"}}`)
			s.expect(isReady)
			s.expectWrites(1, 1)
		},
		"an object without the field of the handler": func(s *scene) {
			s.OnField(widgets, "spec.color", s.waiting("color"), kopf.ID("color"))
			s.begin()
			s.expect(isReady)
			s.expectWrites(0, 1)
			s.Expect(s.condition("Ready")).To(gomega.Equal(spared))
			s.patch(`{"spec":{"color":"red"}}`)
			s.reply("color", nil)
			s.expect(isReady)
			s.Expect(s.condition("Ready")).To(gomega.Equal(finished))
			s.expectWrites(1, 1)
		},
		"an object of which no handler is called": func(s *scene) {
			s.ensuresLabeled()
			s.begin()
			s.expect(isReady)
			s.Expect(s.condition("Ready")).To(gomega.Equal(spared))
			s.expectWrites(2, 1) // one for the finalizer
			s.operator.Stop()
			s.start()
			s.settle(isReady)
			s.expectWrites(0, 0)
			s.patch(resized)
			s.reply("update", nil)
			s.expect(isReady)
			s.Expect(s.condition("Ready")).To(gomega.Equal(finished))
			s.expectWrites(1, 1)
		},
		"a label makes a handler apply": func(s *scene) {
			s.ensuresLabeled()
			s.begin()
			s.settle(isReady)
			s.requests.Reset()
			s.patch(`{"metadata":{"labels":{"ensured":"yes"}}}`)
			s.reply("ensure", nil)
			s.reply("update", nil)
			s.Eventually(func() string { return s.condition("Ready") }).Should(gomega.Equal(finished))
			s.expect(isReady)
			s.expectWrites(1, 1) // the status only this time
			s.patch(`{"metadata":{"labels":{"ensured":"again"}}}`)
			s.reply("ensure", nil)
			s.reply("update", nil)
			s.settle(isReady)
			s.expectWrites(1, 0)
			s.patch(`{"metadata":{"labels":{"ensured":null}}}`)
			s.reply("update", nil)
			s.settle(isReady)
			s.Expect(s.condition("Ready")).To(gomega.Equal(finished)) // the update handler has
		},
		"an object that no handler selects": func(s *scene) {
			s.OnCreate(widgets, s.waiting("fn"), kopf.ID("fn"), kopf.Labels(map[string]kopf.Matcher{"other": kopf.Present()}))
			s.begin()
			s.settle(isWorking)
			s.expectWrites(0, 0)
		},
		"a retry, and a success": func(s *scene) {
			s.onChange("fn")
			s.begin()
			s.reply("fn", errLater)
			s.await("fn")
			s.expect(isWorking)
			s.answer("fn", nil)
			s.expect(isReady)
			s.expectWrites(2, 1)
		},
		"a change during a retry": func(s *scene) {
			s.done()
			s.patch(resized)
			s.reply("fn", errLater)
			s.await("fn")
			s.patch(`{"spec":{"size":3}}`)
			s.answer("fn", errLater)
			s.await("fn")
			s.expect(isWorking)
			s.answer("fn", nil)
			s.expect(isReady)
		},
		"an update during a running handler": func(s *scene) {
			s.done()
			s.patch(resized)
			s.await("fn")
			s.patch(`{"spec":{"size":3}}`)
			s.answer("fn", nil)
			s.await("fn") // for the third size
			s.expect(isWorking)
			s.answer("fn", nil)
			s.expect(isReady)
		},
		"a permanent failure": func(s *scene) {
			s.onChange("fn")
			s.begin()
			s.reply("fn", errBroken)
			s.expect(isStalled)
			s.Expect(s.condition("Stalled")).To(gomega.Equal("True HandlersFailed: Handler fn failed permanently: broken"))
			s.Expect(s.condition("Ready")).To(gomega.HavePrefix("False HandlersFailed: "))
			s.expectWrites(1, 1)
		},
		"a failure of a handler whose id begins with that of another": func(s *scene) {
			s.OnCreate(widgets, s.waiting("fn"), kopf.ID("fn"))
			s.OnUpdate(widgets, s.waiting("size"), kopf.ID("fn"), kopf.Field("spec.size"))
			s.begin()
			s.reply("fn", nil)
			s.expect(isReady)
			s.patch(resized)
			s.reply("size", errBroken)
			s.expect(isStalled)
			s.patch(`{"spec":{"size":3}}`)
			s.reply("size", nil)
			s.expect(isReady)
		},
		"a permanent failure, and a correction": func(s *scene) {
			s.onChange("fn")
			s.begin()
			s.reply("fn", errBroken)
			s.expect(isStalled)
			s.patch(resized)
			s.await("fn")
			s.expect(isWorking)
			s.answer("fn", nil)
			s.expect(isReady)
			s.Expect(s.condition("Stalled")).To(gomega.BeEmpty())
		},
		"another handler succeeds after a permanent failure": func(s *scene) {
			s.OnField(widgets, "spec.size", s.waiting("size"), kopf.ID("size"))
			s.OnField(widgets, "spec.color", s.waiting("color"), kopf.ID("color"))
			s.begin()
			s.reply("size", errBroken)
			s.expect(isStalled)
			s.patch(`{"spec":{"color":"red"}}`)
			s.reply("color", nil)
			s.expect(isStalled)
			s.patch(resized)
			s.reply("size", nil)
			s.expect(isReady)
		},
		"a label changes": func(s *scene) {
			s.done()
			s.patch(`{"metadata":{"labels":{"a":"b"}}}`)
			s.reply("fn", errLater)
			s.await("fn")
			s.expect(isWorking) // although the generation is the same
			s.Expect(s.condition("Reconciling")).To(gomega.HavePrefix("True HandlersRunning: "))
			s.answer("fn", nil)
			s.expect(isReady)
			s.Expect(s.condition("Reconciling")).To(gomega.BeEmpty())
			s.expectWrites(2, 2)
		},
		"several handlers": func(s *scene) {
			s.onChange("a")
			s.onChange("b")
			s.begin()
			s.reply("a", nil)
			s.reply("b", errLater)
			s.await("b")
			s.expect(isWorking)
			s.answer("b", nil)
			s.expect(isReady)
		},
		"sub-handlers": func(s *scene) {
			s.OnCreate(widgets, func(_ context.Context, c *kopf.Change) error {
				c.Subhandler("x", s.waiting("x"))
				c.Subhandler("y", s.waiting("y"))
				return nil
			}, kopf.ID("fn"))
			s.begin()
			s.reply("x", nil)
			s.reply("y", errLater)
			s.await("y")
			s.expect(isWorking)
			s.answer("y", nil)
			s.expect(isReady)
		},
		"a sub-handler that fails": func(s *scene) {
			s.OnCreate(widgets, func(_ context.Context, c *kopf.Change) error {
				c.Subhandler("x", s.waiting("x"))
				return nil
			}, kopf.ID("fn"))
			s.begin()
			s.reply("x", errBroken)
			s.expect(isStalled)
			s.Expect(s.condition("Stalled")).To(gomega.ContainSubstring("Handler fn/x failed permanently: broken"))
		},
		"a daemon only": func(s *scene) {
			s.Daemon(widgets, func(_ context.Context, t *kopf.Task) error { <-t.Stopped(); return nil }, kopf.ID("daemon"))
			s.begin()
			s.expect(isReady)
			s.expectWrites(1, 1)
			s.patch(resized)
			s.expect(isReady)
			s.expectWrites(0, 1)
		},
		"a timer that writes": func(s *scene) {
			s.Timer(widgets, func(_ context.Context, t *kopf.Tick) error { t.SetResult("done"); return nil }, kopf.ID("timer"), kopf.Interval(10*time.Millisecond))
			s.begin()
			s.expect(isReady)
			s.patch(resized)
			s.expect(isReady)
		},
		"a deletion handler only": func(s *scene) {
			s.OnDelete(widgets, s.waiting("delete"), kopf.ID("delete"))
			s.begin()
			s.expect(isReady)
			s.expectWrites(2, 1)
			s.Expect(cluster.Client().Delete(s.t.Context(), s.object.DeepCopy())).To(gomega.Succeed())
			s.await("delete")
			s.expect(terminating)
			s.answer("delete", nil)
			s.Eventually(cluster.Exists(s.object)).Should(gomega.BeFalse())
			s.expectWrites(1, 0)
		},
		"a held deletion": func(s *scene) {
			s.OnDelete(widgets, s.waiting("delete"), kopf.ID("delete"), kopf.HoldOnFailure())
			s.begin()
			s.expect(isReady)
			s.Expect(cluster.Client().Delete(s.t.Context(), s.object.DeepCopy())).To(gomega.Succeed())
			s.reply("delete", errBroken)
			s.Eventually(func() string { return s.condition("Stalled") }).Should(gomega.Equal("True DeletionHeld: Handler delete failed permanently: broken"))
			s.expect(terminating)
			s.Expect(s.condition("DeletionHeld")).To(gomega.HavePrefix("True "))
			s.patch(`{"metadata":{"finalizers":null}}`)
		},
		"a handler that sets conditions": func(s *scene) {
			set := func(_ context.Context, c *kopf.Change) error {
				c.SetCondition(metav1.Condition{Type: "Connected", Status: metav1.ConditionTrue, Reason: "Answered"})
				c.SetCondition(metav1.Condition{Type: "Ready", Status: metav1.ConditionFalse, Reason: "NotYet"})
				return nil
			}
			s.OnCreate(widgets, set, kopf.ID("fn"))
			s.OnUpdate(widgets, set, kopf.ID("fn"))
			s.begin()
			s.expect(isReady)
			s.Expect(s.condition("Connected")).To(gomega.Equal("True Answered: "))
			s.expectWrites(1, 1)
			s.patch(resized)
			s.expect(isReady)
			s.expectWrites(1, 1)
		},
		"a handler that replaces the conditions": func(s *scene) {
			replace := func(_ context.Context, c *kopf.Change) error {
				c.Patch().Set([]any{map[string]any{
					"type": "Mine", "status": "True", "reason": "Mine", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z",
				}}, "status", "conditions")
				return nil
			}
			s.OnCreate(widgets, replace, kopf.ID("fn"))
			s.begin()
			s.expect(isReady)
			s.Expect(s.condition("Mine")).NotTo(gomega.BeEmpty())
			s.expectWrites(1, 1)
		},
		"a handler that changes its object": func(s *scene) {
			s.OnCreate(widgets, func(_ context.Context, c *kopf.Change) error { c.Patch().Set("x", "spec", "color"); return nil }, kopf.ID("fn"))
			s.OnUpdate(widgets, s.waiting("update"), kopf.ID("update"))
			s.begin()
			s.await("update") // for its own change
			s.expect(isWorking)
			s.answer("update", nil)
			s.expect(isReady)
		},
		"a restart": func(s *scene) {
			s.done()
			s.operator.Stop()
			s.expect(isReady)
			s.start()
			s.settle(isReady)
			s.expectWrites(0, 0)
		},
		"a restart during a retry": func(s *scene) {
			s.onChange("fn")
			s.begin()
			s.reply("fn", errLater)
			s.await("fn")
			s.answer("fn", errLater)
			s.await("fn")
			s.answer("fn", kopf.Temporary(errLater, time.Hour))
			s.settle(isWorking)
			s.operator.Stop()
			s.expect(isWorking)
			s.start()
			s.settle(isWorking)
			s.patch(`{"metadata":{"annotations":{"kopf.zalando.org/request-retry":"1 fn"}}}`)
			s.reply("fn", nil)
			s.expect(isReady)
		},
		"a restart after a permanent failure": func(s *scene) {
			s.onChange("fn")
			s.begin()
			s.reply("fn", errBroken)
			s.expect(isStalled)
			s.operator.Stop()
			s.start()
			s.settle(isStalled)
		},
		"a failed handler is called again on request": func(s *scene) {
			s.onChange("fn")
			s.begin()
			s.reply("fn", errBroken)
			s.expect(isStalled)
			s.patch(`{"metadata":{"annotations":{"kopf.zalando.org/request-rerun":"1 fn"}}}`)
			s.reply("fn", nil)
			s.expect(isReady)
		},
		"a failed handler is no longer declared": func(s *scene) {
			s.onChange("fn")
			s.begin()
			s.reply("fn", errBroken)
			s.expect(isStalled)
			s.operator.Stop()
			s.Registry = kopf.NewRegistry()
			s.Registry.Conditions(widgets)
			s.onChange("other")
			s.start()
			s.expect(isReady)
		},
		"resuming": func(s *scene) {
			s.OnResume(widgets, s.waiting("resume"), kopf.ID("resume"))
			s.done()
			s.operator.Stop()
			s.start()
			s.await("resume")
			s.answer("resume", errLater)
			s.await("resume")
			s.expect(isWorking)
			s.answer("resume", nil)
			s.expect(isReady)
		},
		"records in the status": func(s *scene) {
			s.adjust = append(s.adjust, func(o *kopf.Options) {
				o.Settings.Persistence.Progress, o.Settings.Persistence.DiffBase = storage.StatusProgress{}, storage.StatusDiffBase{}
			})
			s.onChange("fn")
			s.begin()
			s.reply("fn", errLater)
			s.await("fn")
			s.expect(isWorking)
			s.answer("fn", nil)
			s.settle(isReady)
			s.patch(resized)
			s.reply("fn", nil)
			s.settle(isReady)
		},
		"a suspended object": func(s *scene) {
			s.done()
			s.patch(`{"metadata":{"annotations":{"kopf.zalando.org/request-suspend":"forever"}}}`)
			s.settle(isReady)
			s.patch(resized)
			s.settle(isWorking)
			s.expectWrites(0, 0)
			s.patch(`{"metadata":{"annotations":{"kopf.zalando.org/request-suspend":null}}}`)
			s.reply("fn", nil)
			s.expect(isReady)
		},
		"an object that is suspended from the start": func(s *scene) {
			s.onChange("fn")
			s.object.SetAnnotations(map[string]string{"kopf.zalando.org/request-suspend": "forever"})
			s.begin()
			s.settle(isWorking)
			s.expectWrites(0, 0)
			s.Expect(s.current().Object["status"]).To(gomega.Equal(map[string]any{"observedGeneration": int64(-1)}))
			s.patch(`{"metadata":{"annotations":{"kopf.zalando.org/request-suspend":null}}}`)
			s.reply("fn", nil)
			s.expect(isReady)
		},
		"a handled object for which conditions are declared later": func(s *scene) {
			s.Registry = kopf.NewRegistry()
			s.onChange("fn")
			s.begin()
			s.reply("fn", nil)
			s.settle(isWorking)
			s.expectWrites(1, 0) // nothing is paid
			s.operator.Stop()
			s.Registry.Conditions(widgets)
			s.start()
			s.expect(isReady)
			s.expectWrites(0, 1)
			s.Expect(s.condition("Ready")).To(gomega.Equal(finished))
		},
	}
	for name, play := range scenarios {
		t.Run(name, func(t *testing.T) { play(newScene(t)) })
	}
}
