package conditions

import (
	"context"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/test/testenv"
)

func TestAnObjectThatDoesNotFitIsStalled(t *testing.T) {
	s := newScene(t)
	s.adjust = append(s.adjust, func(o *kopf.Options) {
		o.Scheme = runtime.NewScheme()
		o.Scheme.AddKnownTypeWithName(schema.GroupVersionKind{Group: "conditions.example.com", Version: "v1", Kind: "Widget"}, &testenv.Sized{})
	})
	typed := kopf.For[*testenv.Sized](s.Registry)
	typed.Conditions()
	fn := s.waiting("fn")
	sized := func(ctx context.Context, _ *testenv.Sized, c *kopf.Change) error {
		c.SetCondition(metav1.Condition{Type: "Sized", Status: metav1.ConditionTrue, Reason: "Known"})
		return fn(ctx, c)
	}
	typed.OnCreate(sized, kopf.ID("fn"))
	typed.OnUpdate(sized, kopf.ID("fn"))
	s.begin()
	s.reply("fn", nil)
	s.expect(isReady)
	s.Expect(s.condition("Sized")).To(gomega.Equal("True Known: "))
	s.patch(`{"spec":{"size":"large"}}`)
	s.expect(isStalled)
	s.Expect(s.condition("Stalled")).To(gomega.And(gomega.HavePrefix("True ObjectMisfit: Handler fn cannot be called: "), gomega.ContainSubstring("spec.size")))
	s.patch(resized)
	s.await("fn")
	s.expect(isWorking)
	s.answer("fn", nil)
	s.expect(isReady)
}

func TestAPausedOperatorWritesNoConditions(t *testing.T) {
	s := newScene(t)
	peering := testenv.NewObject("KopfPeering", s.object.GetNamespace(), "default", nil)
	s.Expect(cluster.Client().Create(t.Context(), peering)).To(gomega.Succeed())
	s.done()
	setPeer := func(entry string) {
		t.Helper()
		s.Expect(cluster.Client().Patch(t.Context(), peering.DeepCopy(), mergePatch(`{"status":{"other":`+entry+`}}`))).To(gomega.Succeed())
	}
	setPeer(`{"priority":100,"lifetime":3600,"lastseen":"` + time.Now().UTC().Format("2006-01-02T15:04:05.000000") + `"}`)
	s.Eventually(s.logs.String).Should(gomega.ContainSubstring("The operator is paused"))
	s.patch(`{"spec":{"size":2}}`)
	s.requests.Reset()
	s.Eventually(cluster.AtRest(s.requests)).Should(gomega.BeTrue())
	s.expect(isWorking)
	s.Expect(s.requests.Snapshot().Writes("widgets")).To(gomega.BeZero())
	setPeer(`null`)
	s.reply("fn", nil)
	s.expect(isReady)
}

// Without the default of -1, kstatus takes an object without a status for current, so the
// first retry costs a write that says otherwise.
func TestAnObjectWithoutTheDefault(t *testing.T) {
	s := newScene(t)
	s.Registry = kopf.NewRegistry()
	s.Registry.Conditions(plains)
	s.object.SetKind("Plain")
	s.OnCreate(plains, s.waiting("fn"), kopf.ID("fn"))
	s.begin()
	s.await("fn")
	s.Expect(judge(s.current())).To(gomega.Equal(verdict{false, "Current"}))
	s.answer("fn", errLater)
	s.await("fn")
	s.expect(isWorking)
	s.answer("fn", nil)
	s.expect(isReady)
}

// The handler has succeeded, whatever the schema says about conditions.
func TestConditionsThatTheSchemaRejects(t *testing.T) {
	s := newScene(t)
	s.Registry = kopf.NewRegistry()
	s.Registry.Conditions(picks)
	s.object.SetKind("Pick")
	fn := s.waiting("fn")
	s.OnCreate(picks, fn, kopf.ID("fn"))
	s.OnUpdate(picks, fn, kopf.ID("fn"))
	s.begin()
	s.reply("fn", nil)
	s.Eventually(cluster.Current(s.object)).Should(testenv.HaveAnnotation("kopf.zalando.org/last-handled-configuration", gomega.Not(gomega.BeEmpty())))
	s.Eventually(cluster.Events(s.current())).Should(gomega.ContainElement(gomega.HavePrefix("Warning ConditionsRefused: ")))
	s.Eventually(cluster.AtRest(s.requests)).Should(gomega.BeTrue())
	s.requests.Reset()
	s.patch(resized)
	s.reply("fn", nil)
	s.Eventually(cluster.Current(s.object)).Should(testenv.HaveAnnotation("kopf.zalando.org/last-handled-configuration", gomega.ContainSubstring(`"size":2`)))
	s.Eventually(cluster.AtRest(s.requests)).Should(gomega.BeTrue())
	s.Expect(s.requests.Snapshot().Writes("picks")).To(gomega.Equal(1)) // it is not tried again
	s.Expect(s.logs.With("the handler has failed")).To(gomega.BeEmpty())
}

// The status is written before the records. If the operator ends in between, the handlers are
// called again, and the conditions follow what they say then.
func TestACrashBetweenTheConditionsAndTheRecords(t *testing.T) {
	s := newScene(t)
	faults := testenv.Strike(s.config)
	faults.Begin(testenv.Refuse, func(r testenv.Request) bool {
		return r.Resource == "widgets" && r.Subresource == "" && r.Method == http.MethodPatch
	})
	s.onChange("fn")
	s.begin()
	s.reply("fn", nil)
	s.expect(isReady) // the handler has succeeded, which is not recorded yet
	s.operator.Stop()
	faults.Heal()
	s.start()
	s.reply("fn", errLater)
	s.await("fn")
	s.expect(isWorking)
	s.answer("fn", errBroken)
	s.expect(isStalled)
}

func TestAConflictWithAChangeOfTheObject(t *testing.T) {
	s := newScene(t)
	var raced atomic.Bool
	faults := testenv.Strike(s.config)
	faults.Begin(func(sent *http.Request, next http.RoundTripper) (*http.Response, error) {
		if raced.CompareAndSwap(false, true) {
			s.patch(resized)
		}
		return next.RoundTrip(sent)
	}, func(r testenv.Request) bool { return r.Resource == "widgets" && r.Method == http.MethodPatch })
	s.onChange("fn")
	s.begin()
	s.reply("fn", errBroken)
	s.await("fn") // for the change
	s.expect(isWorking)
	s.answer("fn", nil)
	s.expect(isReady)
}

// The answers to all writes are lost: every write is found on the object instead.
func TestLostAnswers(t *testing.T) {
	s := newScene(t)
	faults := testenv.Strike(s.config)
	faults.Begin(testenv.Lose, func(r testenv.Request) bool { return r.Resource == "widgets" && r.Method == http.MethodPatch })
	s.adjust = append(s.adjust, func(o *kopf.Options) { o.Settings.Queueing.ErrorDelays = []time.Duration{10 * time.Millisecond} })
	s.onChange("fn")
	s.begin()
	s.reply("fn", nil)
	s.settle(isReady)
	s.patch(resized)
	s.reply("fn", errBroken)
	s.expect(isStalled)
}

func TestAnotherClientRemovesTheConditions(t *testing.T) {
	s := newScene(t)
	s.done()
	s.Expect(cluster.Client().Status().Patch(t.Context(), s.object.DeepCopy(), mergePatch(`{"status":null}`))).To(gomega.Succeed())
	s.expect(isReady)
	s.expectWrites(0, 1)
}

// Both operators handle their own objects of one resource.
func TestObjectsOfAnotherOperatorAreLeftAlone(t *testing.T) {
	s := newScene(t)
	s.OnCreate(widgets, s.waiting("fn"), kopf.ID("fn"), kopf.Labels(map[string]kopf.Matcher{"shard": kopf.Equal("a")}))
	s.object.SetLabels(map[string]string{"shard": "b"})
	s.begin()
	s.settle(isWorking)
	s.expectWrites(0, 0)
	status, _, _ := unstructured.NestedMap(s.current().Object, "status")
	s.Expect(status).To(gomega.Equal(map[string]any{"observedGeneration": int64(-1)}))
}
