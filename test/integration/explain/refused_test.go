package explain

import (
	"context"
	"testing"

	"github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/test/testenv"
)

// refuseWrites lets a webhook refuse all changes of objects, until the returned function is called.
func (s *scene) refuseWrites() (accept func()) {
	s.t.Helper()
	guard := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}, Webhooks: []admissionregistrationv1.ValidatingWebhook{{
		Name: "guard.example.com", ClientConfig: admissionregistrationv1.WebhookClientConfig{URL: new("https://127.0.0.1:1/")},
		Rules: []admissionregistrationv1.RuleWithOperations{{
			Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Update},
			Rule:       admissionregistrationv1.Rule{APIGroups: []string{"kopf.dev"}, APIVersions: []string{"v1"}, Resources: []string{"kopfexamples"}},
		}},
		NamespaceSelector:       &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: s.namespace}},
		AdmissionReviewVersions: []string{"v1"}, SideEffects: new(admissionregistrationv1.SideEffectClassNone),
	}}}
	s.Expect(cluster.Client().Create(s.t.Context(), guard)).To(gomega.Succeed())
	accept = func() {
		s.Expect(client.IgnoreNotFound(cluster.Client().Delete(context.Background(), guard))).To(gomega.Succeed())
	}
	s.t.Cleanup(accept)
	s.create("probe")
	s.Eventually(s.probe).ShouldNot(gomega.Succeed()) // until the API server knows the webhook
	return accept
}

// probe changes an object, which a webhook can refuse.
func (s *scene) probe() error {
	obj := testenv.NewObject("KopfExample", s.namespace, "probe", nil)
	return cluster.Client().Patch(s.t.Context(), obj, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"a":null}}}`)))
}

// fails runs an operator whose writes are refused, and stops it. The object has a field, because the API
// server does not track who writes to objects without any.
func (s *scene) fails() (accept func()) {
	s.t.Helper()
	accept = s.refuseWrites()
	former := s.start()
	obj := testenv.NewObject("KopfExample", s.namespace, "one", map[string]any{"size": int64(1)})
	s.Expect(cluster.Client().Create(s.t.Context(), obj)).To(gomega.Succeed())
	s.shows("one", "failing")
	former.Stop()
	return accept
}

// refused are situations of objects that the operator could not write.
var refused = map[string]situation{
	"the writes of the operator are refused": {
		arrange: func(s *scene) {
			s.OnCreate(examples, create, kopf.ID("fn"))
			s.fails()
		},
		stopped: []string{"create", "failing", "fn (create): due"},
		running: []string{"create", "failing", "fn (create): due", "looks later"},
	},
	"the writes of the operator were refused": {
		arrange: func(s *scene) {
			s.OnCreate(examples, create, kopf.ID("fn"))
			s.fails()()
			s.Eventually(s.probe).Should(gomega.Succeed())
		},
		stopped: []string{"create", "failing", "fn (create): due"},
		running: []string{"noop", "fn (create): done", "idle"},
	},
	"the writes of the operator after the creation are refused": {
		arrange: func(s *scene) {
			s.OnUpdate(examples, create, kopf.ID("fn"))
			s.changed(`{"spec":{"size":1}}`, `{"spec":{"size":2}}`)
			s.refuseWrites()
			former := s.start()
			s.shows("one", "failing")
			former.Stop()
		},
		stopped: []string{"update", "failing", "change spec.size: 1 -> 2", "fn (update): due", "created (create): done"},
		running: []string{"update", "failing", "change spec.size: 1 -> 2", "fn (update): due", "created (create): done", "looks later"},
	},
}

// The event about an error stays for an hour, and the error is over before.
func TestAnErrorIsOverWithASuccess(t *testing.T) {
	const name = "shops.example.com"
	for success, adjust := range map[string]func(*scene){
		"by a write":            func(s *scene) { s.settings.Posting.Disabled = true },
		"by the end of a cycle": func(s *scene) { s.settings.Name, s.settings.Posting.Component = "writer.example.com", name },
	} {
		t.Run(success, func(t *testing.T) {
			s := newScene(t)
			s.settings.Name = name
			s.OnCreate(examples, create, kopf.ID("fn"))
			accept := s.fails()
			s.shows("one", "failing")
			s.settings.Name = "other.example.com"
			s.states("one", "another operator", "create", "fn (create): due") // it was not its work
			accept()
			s.settings.Name = name
			adjust(s)
			s.start()
			s.settings.Name = name
			s.Eventually(func() string { return s.explain() }).Should(gomega.ContainSubstring("Warning ReconcileError at "))
			s.states("one", "", "noop", "fn (create): done")
		})
	}
}
