package admission

import (
	"context"
	"testing"
	"time"

	"github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/settings"
	"github.com/kopf-go/kopf/pkg/webhook/servers"
	"github.com/kopf-go/kopf/test/operators"
	"github.com/kopf-go/kopf/test/testenv"
)

// managed lets an operator of the namespace listen and manage its configurations.
func managed(t *testing.T, namespace string) func(*kopf.Options) {
	t.Helper()
	server := servers.Server{Port: testenv.FreePort(t), Secret: namespace + "/webhooks"}
	return func(o *kopf.Options) {
		o.Settings.Scope.Namespaces = []string{namespace}
		o.Settings.Admission.Server, o.Settings.Admission.Managed = server, namespace+".kopf.dev"
	}
}

// no rejects every request.
func no(_ context.Context, a *kopf.Admission) error { return kopf.Reject("no "+a.Name(), 418) }

// dryRun returns a function that creates the object in a dry run.
func dryRun(t *testing.T, object *unstructured.Unstructured) func() error {
	t.Helper()
	return func() error { return cluster.Client().Create(t.Context(), object.DeepCopy(), client.DryRunAll) }
}

// webhooks returns a function that counts the webhooks of an operator.
func webhooks(t *testing.T, namespace string) func() int {
	t.Helper()
	return func() int {
		var found admissionregistrationv1.ValidatingWebhookConfiguration
		err := cluster.Client().Get(t.Context(), client.ObjectKey{Name: namespace + ".kopf.dev"}, &found)
		if err != nil {
			return -1
		}
		return len(found.Webhooks)
	}
}

// A resource that is installed while the operator runs is reviewed as soon as it exists.
func TestResourceInstalledLaterIsReviewed(t *testing.T) {
	t.Parallel()
	g, r, namespace := gomega.NewWithT(t), kopf.NewRegistry(), cluster.Namespace(t)
	group := namespace + ".example.com"
	r.OnValidate(examples, no, kopf.ID("examples"))
	r.OnValidate(kopf.Resource(group, "lates"), no, kopf.ID("lates"))
	operator := operators.Start(t, cluster.Config(), namespace, r, managed(t, namespace))
	g.Eventually(dryRun(t, testenv.NewObject("KopfExample", namespace, "one", nil))).Should(gomega.MatchError(gomega.ContainSubstring("no one")))
	g.Expect(webhooks(t, namespace)()).To(gomega.Equal(1))

	crd := testenv.Definition(group, "lates", "Late", "v1")
	known := runtime.NewScheme()
	g.Expect(apiextensionsv1.AddToScheme(known)).To(gomega.Succeed())
	admin, err := client.New(cluster.Config(), client.Options{Scheme: known})
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(admin.Create(t.Context(), crd)).To(gomega.Succeed())
	late := testenv.NewObject("Late", namespace, "two", nil)
	late.SetAPIVersion(group + "/v1")
	g.Eventually(dryRun(t, late)).Should(gomega.MatchError(gomega.ContainSubstring("no two")))
	g.Expect(webhooks(t, namespace)()).To(gomega.Equal(2))

	g.Expect(admin.Delete(t.Context(), crd)).To(gomega.Succeed())
	g.Eventually(webhooks(t, namespace)).Should(gomega.Equal(1))
	operator.Stop()
	g.Expect(webhooks(t, namespace)()).To(gomega.BeZero())
	// The API server calls webhooks until its watch of the configurations catches up.
	g.Eventually(dryRun(t, testenv.NewObject("KopfExample", namespace, "one", nil))).Should(gomega.Succeed())
}

// Every replica answers, with one certificate; the leader publishes its CA to the cluster. The webhooks
// stay when it stops, unless the settings say otherwise.
func TestReplicasTakeOverTheAdmissionServer(t *testing.T) {
	t.Parallel()
	g, namespace, removed := gomega.NewWithT(t), cluster.Namespace(t), false
	replica := func(name string) *operators.Operator {
		r := kopf.NewRegistry()
		r.OnValidate(examples, func(context.Context, *kopf.Admission) error { return kopf.Reject("by "+name, 418) }, kopf.ID("check"))
		return operators.Start(t, cluster.Config(), namespace, r, managed(t, namespace), func(o *kopf.Options) {
			o.Settings.Replicas.LeaderElection, o.Settings.Replicas.LeaseNamespace = true, namespace
			o.Settings.Replicas.RetryPeriod = 500 * time.Millisecond
			o.Settings.Admission.RemoveOnExit = removed
		})
	}
	object := testenv.NewObject("KopfExample", namespace, "one", nil)
	first := replica("first")
	g.Eventually(dryRun(t, object)).Should(gomega.MatchError(gomega.ContainSubstring("by first")))
	second := replica("second")
	g.Consistently(dryRun(t, object), "1s").Should(gomega.MatchError(gomega.ContainSubstring("by first")))
	first.Stop()
	g.Eventually(dryRun(t, object)).Should(gomega.MatchError(gomega.ContainSubstring("by second")))
	second.Stop()
	g.Expect(webhooks(t, namespace)()).To(gomega.Equal(1))
	removed = true
	third := replica("third")
	g.Eventually(dryRun(t, object)).Should(gomega.MatchError(gomega.ContainSubstring("by third")))
	third.Stop()
	g.Expect(webhooks(t, namespace)()).To(gomega.BeZero())
}

func TestReplicasMustShareOneCertificate(t *testing.T) {
	t.Parallel()
	g, r, namespace := gomega.NewWithT(t), kopf.NewRegistry(), cluster.Namespace(t)
	r.OnValidate(examples, no, kopf.ID("check"))
	var s kopf.Settings
	s.Admission.Server = servers.Server{Port: testenv.FreePort(t)}
	s.Replicas.LeaderElection, s.Replicas.LeaseNamespace = true, namespace
	g.Expect(kopf.Run(t.Context(), kopf.Options{Registry: r, Config: cluster.Config(), Settings: s})).
		To(gomega.MatchError(gomega.ContainSubstring("so that the replicas share one certificate")))
}

// An operator without its admission server must not look healthy.
func TestFailedAdmissionServerStopsTheOperator(t *testing.T) {
	t.Parallel()
	g, r := gomega.NewWithT(t), kopf.NewRegistry()
	r.OnValidate(examples, no, kopf.ID("check"))
	var s kopf.Settings
	s.Admission.Server = settings.AdmissionServerFunc(func(context.Context, settings.AdmissionEndpoint) error { return context.DeadlineExceeded })
	g.Expect(kopf.Run(t.Context(), kopf.Options{Registry: r, Config: cluster.Config(), Settings: s})).
		To(gomega.MatchError(gomega.ContainSubstring("the admission server (Settings.Admission.Server) has failed: context deadline exceeded")))
}

// An operator that has no admission handlers anymore removes the webhooks of an earlier
// version that did not clean up.
func TestWebhooksOfAnEarlierVersionAreRemoved(t *testing.T) {
	t.Parallel()
	g, namespace := gomega.NewWithT(t), cluster.Namespace(t)
	left := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	left.Name = namespace + ".kopf.dev"
	none, url := admissionregistrationv1.SideEffectClassNone, "https://127.0.0.1:1/old"
	left.Webhooks = []admissionregistrationv1.ValidatingWebhook{{
		Name: "old.kopf.dev", SideEffects: &none, AdmissionReviewVersions: []string{"v1"},
		ClientConfig: admissionregistrationv1.WebhookClientConfig{URL: &url},
	}}
	g.Expect(cluster.Client().Create(t.Context(), left)).To(gomega.Succeed())
	r := kopf.NewRegistry()
	r.OnCreate(examples, func(context.Context, *kopf.Change) error { return nil }, kopf.ID("create"))
	operators.Start(t, cluster.Config(), namespace, r, managed(t, namespace))
	g.Eventually(webhooks(t, namespace)).Should(gomega.BeZero())
}

// When an operator reports that it is ready, the cluster knows its webhooks.
func TestReadyOperatorHasItsWebhooks(t *testing.T) {
	t.Parallel()
	g, r, namespace := gomega.NewWithT(t), kopf.NewRegistry(), cluster.Namespace(t)
	r.OnValidate(examples, no, kopf.ID("check"))
	operators.Start(t, cluster.Config(), namespace, r, managed(t, namespace))
	g.Expect(webhooks(t, namespace)()).To(gomega.Equal(1))
}

// The shutdown of an operator does not wait for a review that does not end.
func TestEndlessReviewIsCanceledAtShutdown(t *testing.T) {
	t.Parallel()
	g, r, namespace := gomega.NewWithT(t), kopf.NewRegistry(), cluster.Namespace(t)
	entered, left := make(chan struct{}, 10), make(chan struct{}, 10)
	r.OnValidate(examples, func(ctx context.Context, _ *kopf.Admission) error {
		entered <- struct{}{}
		<-ctx.Done()
		left <- struct{}{}
		return ctx.Err()
	}, kopf.ID("endless"))
	operator := operators.Start(t, cluster.Config(), namespace, r, managed(t, namespace))
	rejected := make(chan error, 1)
	object := testenv.NewObject("KopfExample", namespace, "one", nil)
	go func() {
		for len(entered) == 0 && t.Context().Err() == nil { // until the API server uses the webhook
			rejected <- dryRun(t, object)()
			if len(entered) == 0 {
				<-rejected
			}
		}
	}()
	g.Eventually(entered).Should(gomega.Receive())
	operator.Stop()
	g.Expect(left).To(gomega.Receive())
}

func TestManagedConfigurationsNeedAServer(t *testing.T) {
	t.Parallel()
	g, r := gomega.NewWithT(t), kopf.NewRegistry()
	r.OnValidate(examples, no, kopf.ID("check"))
	mgr, _ := newManager(t)
	var s kopf.Settings
	s.Admission.Managed = "auto.kopf.dev"
	_, err := kopf.Add(mgr, kopf.Options{Registry: r, Settings: s})
	g.Expect(err).To(gomega.MatchError(gomega.ContainSubstring("settings.Admission.Managed requires settings.Admission.Server")))
}
