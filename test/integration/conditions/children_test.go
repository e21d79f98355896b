package conditions

import (
	"context"
	"net/http"
	"testing"

	"github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/test/testenv"
)

// child creates a child of the object, or changes it.
func (s *scene) child(value string) {
	s.t.Helper()
	child := testenv.NewObject("ConfigMap", s.object.GetNamespace(), "child", nil)
	child.SetAPIVersion("v1")
	child.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(s.current(), s.object.GroupVersionKind())})
	s.Expect(unstructured.SetNestedStringMap(child.Object, map[string]string{"value": value}, "data")).To(gomega.Succeed())
	s.Expect(cluster.Client().Create(s.t.Context(), child)).To(gomega.Or(gomega.Succeed(), gomega.MatchError(gomega.ContainSubstring("already exists"))))
	s.Expect(cluster.Client().Patch(s.t.Context(), child, mergePatch(`{"data":{"value":"`+value+`"}}`))).To(gomega.Succeed())
}

// A handler of children fails for one child, and for others it does not. The object is as ready as
// its own handlers say: what a child means for it is what the handler says in a condition.
func TestFailedCallsForChildrenDoNotMakeAnObjectUnready(t *testing.T) {
	s := newScene(t)
	reply := s.waiting("child")
	s.OnChild(widgets, kopf.Resource("v1", "configmaps"), func(ctx context.Context, c *kopf.ChildChange) error {
		if c.Initial() {
			return nil
		}
		err := reply(ctx, nil)
		value, _, _ := unstructured.NestedString(c.Child().Raw(), "data", "value")
		switch {
		case value == "plain":
		case err != nil:
			c.SetCondition(metav1.Condition{Type: "ChildrenHandled", Status: metav1.ConditionFalse, Reason: "Failed", Message: err.Error()})
		default:
			c.SetCondition(metav1.Condition{Type: "ChildrenHandled", Status: metav1.ConditionTrue, Reason: "Handled"})
		}
		return err
	}, kopf.ID("child"))
	s.onChange("fn")
	s.adjust = append(s.adjust, func(o *kopf.Options) { o.Settings.Name = "conditions" })
	s.begin()
	s.reply("fn", nil)
	s.expect(isReady)
	s.Eventually(cluster.AtRest(s.requests)).Should(gomega.BeTrue())
	s.requests.Reset()

	s.child("plain")
	s.reply("child", errLater)
	s.await("child")
	s.expect(isReady)
	s.answer("child", errBroken)
	s.Eventually(func() []string { return s.logs.With("broken") }).ShouldNot(gomega.BeEmpty())
	s.Eventually(cluster.AtRest(s.requests)).Should(gomega.BeTrue())
	s.expect(isReady)
	s.Expect(s.requests.Snapshot()).NotTo(gomega.HaveKey(testenv.Key{Method: http.MethodPatch, Target: "widgets/status"}))

	s.child("bad")
	s.reply("child", errBroken)
	s.Eventually(func() string { return s.condition("ChildrenHandled") }).Should(gomega.Equal("False Failed: broken"))
	s.expect(isReady)
	s.child("good")
	s.reply("child", nil)
	s.Eventually(func() string { return s.condition("ChildrenHandled") }).Should(gomega.Equal("True Handled: "))
	s.expect(isReady)
}
