package e2e

import (
	"fmt"
	"testing"

	"github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/test/testenv"
)

func testAdmission(t testing.TB, e *example) {
	g := gomega.NewWithT(t)
	caller := newCaller(t, "Example Common Name")
	operator := e.start(t, "CLIENT_CA="+caller.certificateFile)
	operator.says("The operator is running.")
	e.isAsked(t)
	e.recordsNoDryRuns(t, operator)
	e.identifiesCallers(t, caller)

	without := e.variant(t, `{"spec":{"numbers":null},"metadata":{"name":"without-numbers"}}`)
	g.Expect(cluster.Current(without)()).To(testenv.HavePath("spec.numbers", []any{int64(1), int64(2), int64(3)}))
	sample := e.create(t)
	g.Expect(cluster.Current(sample)()).To(testenv.HavePath("spec.numbers", []any{int64(1), 2.5, int64(3)}))

	g.Expect(tryMerge(t, sample, `{"spec":{"numbers":[101]}}`)).To(gomega.MatchError(gomega.ContainSubstring("The number 101 is not between 0 and 100.")))
	g.Expect(tryMerge(t, sample, `{"spec":{"numbers":["many"]}}`)).To(gomega.MatchError(gomega.ContainSubstring("many is not a number.")))
	g.Expect(tryMerge(t, sample, `{"spec":{"numbers":5}}`)).To(gomega.MatchError(gomega.ContainSubstring("The numbers must be a list.")))

	status := client.RawPatch(client.Merge.Type(), []byte(`{"status":{"phase":"Lost"}}`))
	g.Expect(cluster.Client().Status().Patch(t.Context(), sample, status)).To(gomega.MatchError(gomega.ContainSubstring(`The phase "Lost" does not exist.`)))
	g.Expect(cluster.Current(sample)()).To(gomega.SatisfyAll(testenv.HavePath("status", nil), haveNoTraces()))

	merge(t, sample, `{"metadata":{"labels":{"locked":"yes"}}}`)
	g.Expect(cluster.Client().Delete(t.Context(), sample)).To(gomega.MatchError(gomega.ContainSubstring("kopf-example-1 is locked.")))
	merge(t, sample, `{"metadata":{"labels":{"locked":null}}}`)
	g.Expect(cluster.Client().Delete(t.Context(), sample)).To(gomega.Succeed())

	operator.stop()
	var validating admissionregistrationv1.ValidatingWebhookConfiguration
	var mutating admissionregistrationv1.MutatingWebhookConfiguration
	name := client.ObjectKey{Name: "admission.kopf.dev"}
	g.Expect(cluster.Client().Get(t.Context(), name, &validating)).To(gomega.Succeed())
	g.Expect(cluster.Client().Get(t.Context(), name, &mutating)).To(gomega.Succeed())
	g.Expect(validating.Webhooks).To(gomega.BeEmpty())
	g.Expect(mutating.Webhooks).To(gomega.BeEmpty())
}

// isAsked waits until the API server calls the operator, which takes a moment after the
// configuration has changed.
func (e *example) isAsked(t testing.TB) {
	t.Helper()
	g := gomega.NewWithT(t)
	number := 0
	g.Eventually(func() (string, error) {
		number++
		probe := e.sample(t)
		probe.SetName(fmt.Sprintf("probe-%d", number))
		probe.Object["spec"] = map[string]any{"numbers": "none"}
		rejected := cluster.Client().Create(t.Context(), probe, client.DryRunAll)
		probe.Object["spec"] = map[string]any{}
		err := cluster.Client().Create(t.Context(), probe, client.DryRunAll)
		return fmt.Sprint(rejected != nil, probe.Object["spec"]), err
	}).Should(gomega.Equal("true map[numbers:[1 2 3]]"))
}

// recordsNoDryRuns checks that the journal contains a creation, and none of the dry runs so far.
func (e *example) recordsNoDryRuns(t testing.TB, operator *operator) {
	t.Helper()
	g := gomega.NewWithT(t)
	e.variant(t, `{"metadata":{"name":"noted"}}`)
	g.Eventually(operator.saidTimes).WithArguments("The request is recorded.", "noted", `"operation": "CREATE"`).Should(gomega.Equal(1))
	g.Expect(operator.saidTimes("The request is recorded.")).To(gomega.Equal(1), "a dry run was recorded")
	c, warnings := newClientWithWarnings(t)
	tried := e.sample(t)
	tried.SetName("tried")
	g.Expect(c.Create(t.Context(), tried, client.DryRunAll)).To(gomega.Succeed())
	g.Expect(warnings()).To(gomega.ContainElement("This is a dry run: the request is not recorded."))

	webhook := e.webhook(t, "recordrequest.admission.kopf.dev")
	g.Expect(webhook.SideEffects).To(gomega.HaveValue(gomega.Equal(admissionregistrationv1.SideEffectClassNoneOnDryRun)))
}

// webhook returns a validating webhook of the example.
func (e *example) webhook(t testing.TB, name string) admissionregistrationv1.ValidatingWebhook {
	t.Helper()
	var configuration admissionregistrationv1.ValidatingWebhookConfiguration
	if err := cluster.Client().Get(t.Context(), client.ObjectKey{Name: "admission.kopf.dev"}, &configuration); err != nil {
		t.Fatal(err)
	}
	for _, webhook := range configuration.Webhooks {
		if webhook.Name == name {
			return webhook
		}
	}
	t.Fatalf("there is no webhook %s in %v", name, configuration.Webhooks)
	return admissionregistrationv1.ValidatingWebhook{}
}

func tryMerge(t testing.TB, object client.Object, patch string) error {
	t.Helper()
	return cluster.Client().Patch(t.Context(), object.DeepCopyObject().(client.Object), client.RawPatch(client.Merge.Type(), []byte(patch)))
}
