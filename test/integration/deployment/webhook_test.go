package deployment

import (
	"errors"

	"github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/test/testenv"
)

// rejected is the error of the manager's check.
var rejected = gomega.MatchError(gomega.ContainSubstring(`The field "my size" of the spec cannot be in a ConfigMap`))

// connects resolves the service of the webhooks to this machine, because there is no cluster
// network. The port is the leader's port in the configurations, and the name matches the
// certificate.
func (o *operation) connects() {
	o.t.Helper()
	service := &corev1.Service{}
	service.Namespace, service.Name = o.deployment.Namespace, "kopf-manager-webhook"
	patch := client.RawPatch(types.MergePatchType, []byte(`{"spec": {"type": "ExternalName", "externalName": "localhost"}}`))
	o.Expect(o.Client().Patch(o.t.Context(), service, patch)).To(gomega.Succeed())
}

// checks creates objects in dry runs until the operator checks them. Without webhooks, it does
// nothing.
func (o *operation) checks() {
	o.t.Helper()
	if _, served := o.pods[0].ports["webhook"]; !served {
		return
	}
	o.Eventually(o.tried(map[string]any{"size": int64(3)})).Should(testenv.HavePath("spec.color", "grey"))
	o.Eventually(func() error {
		_, err := o.tried(map[string]any{"my size": int64(3)})()
		return err
	}).Should(rejected)
	o.certified()
}

// releases changes and deletes an object that is older than the check and would not pass it. The
// operator cannot make its ConfigMap, and records that.
func (o *operation) releases(older *unstructured.Unstructured) {
	o.t.Helper()
	o.Eventually(o.Current(older)).Should(testenv.HavePath("metadata.annotations", gomega.HaveKey("kopf.zalando.org/publish")))
	o.change(older, `{"metadata": {"labels": {"seen": "yes"}}}`)
	worse := client.RawPatch(types.MergePatchType, []byte(`{"spec": {"my size": 4}}`))
	o.Expect(o.Client().Patch(o.t.Context(), older.DeepCopy(), worse)).To(rejected)
	o.Expect(o.Client().Delete(o.t.Context(), older.DeepCopy())).To(gomega.Succeed())
	o.Eventually(o.Exists(older)).Should(gomega.BeFalse())
}

// tried returns a function that returns an object as it would be stored.
func (o *operation) tried(spec map[string]any) func() (*unstructured.Unstructured, error) {
	o.t.Helper()
	sample := sample(o.t, "default")
	sample.SetName("tried")
	sample.Object["spec"] = spec
	return func() (*unstructured.Unstructured, error) {
		object := sample.DeepCopy()
		err := o.Client().Create(o.t.Context(), object, client.DryRunAll)
		return object, err
	}
}

// certified checks that the certificate that the replicas share is verified everywhere.
func (o *operation) certified() {
	o.t.Helper()
	secret := &corev1.Secret{}
	key := client.ObjectKey{Namespace: o.deployment.Namespace, Name: "kopf-manager-webhook"}
	o.Expect(o.Client().Get(o.t.Context(), key, secret)).To(gomega.Succeed())
	hooks, err := o.hooks()
	o.Expect(err).NotTo(gomega.HaveOccurred())
	o.Expect(hooks).To(gomega.HaveLen(2))
	for _, hook := range hooks {
		o.Expect(hook.Service.Name).To(gomega.Equal(key.Name))
		o.Expect(string(hook.CABundle)).To(gomega.Equal(string(secret.Data["ca.crt"])))
	}
}

// hooks returns the webhooks of the operator in both of its configurations.
func (o *operation) hooks() (all []admissionregistrationv1.WebhookClientConfig, err error) {
	validating, mutating := &admissionregistrationv1.ValidatingWebhookConfiguration{}, &admissionregistrationv1.MutatingWebhookConfiguration{}
	for _, configuration := range []client.Object{validating, mutating} {
		err = errors.Join(err, o.Client().Get(o.t.Context(), client.ObjectKey{Name: "manager.kopf.dev"}, configuration))
	}
	for _, webhook := range validating.Webhooks {
		all = append(all, webhook.ClientConfig)
	}
	for _, webhook := range mutating.Webhooks {
		all = append(all, webhook.ClientConfig)
	}
	return all, err
}
