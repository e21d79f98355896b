package deployment

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/test/audit"
	"github.com/kopf-go/kopf/test/testenv"
)

// serviceVersion is what the Operator Lifecycle Manager acts on in a ClusterServiceVersion.
type serviceVersion struct {
	Spec struct {
		Install struct {
			Spec struct {
				ClusterPermissions []permissions `json:"clusterPermissions"`
				Permissions        []permissions `json:"permissions"`
				Deployments        []struct {
					Name  string                `json:"name"`
					Label map[string]string     `json:"label"`
					Spec  appsv1.DeploymentSpec `json:"spec"`
				} `json:"deployments"`
			} `json:"spec"`
		} `json:"install"`
		Webhooks []webhookDefinition `json:"webhookdefinitions"`
	} `json:"spec"`
}

// permissions are the rules of an account.
type permissions struct {
	ServiceAccountName string              `json:"serviceAccountName"`
	Rules              []rbacv1.PolicyRule `json:"rules"`
}

type webhookDefinition struct {
	admissionregistrationv1.ValidatingWebhook

	GenerateName string `json:"generateName"`
	Type         string `json:"type"`
	Path         string `json:"webhookPath"`
}

// bundle returns the ClusterServiceVersion of a bundle, and the objects that the Operator Lifecycle Manager makes for it in
// a namespace: the files, roles with their bindings, an account, and the deployment.
func bundle(t *testing.T, dir, namespace string) (version serviceVersion, all []*unstructured.Unstructured) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root(t), dir, "manifests", "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("got %q, %v", files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, objects(t, text)...)
	}
	found := one(t, "ClusterServiceVersion", all)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(found.Object, &version); err != nil {
		t.Fatal(err)
	}
	all = slices.DeleteFunc(all, func(object *unstructured.Unstructured) bool { return object == found })
	for _, object := range all {
		if kind := object.GetKind(); kind == "Service" || kind == "PodDisruptionBudget" {
			object.SetNamespace(namespace)
		}
	}
	meta := metav1.ObjectMeta{Namespace: namespace, Name: "kopf-manager"}
	add := func(apiVersion, kind string, typed any) {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
		if err != nil {
			t.Fatal(err)
		}
		object := &unstructured.Unstructured{Object: content}
		object.SetAPIVersion(apiVersion)
		object.SetKind(kind)
		unstructured.RemoveNestedField(object.Object, "status")
		all = append(all, object)
	}
	add("v1", "ServiceAccount", &corev1.ServiceAccount{ObjectMeta: meta})
	install := version.Spec.Install.Spec
	to := func(p permissions) []rbacv1.Subject {
		return []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: p.ServiceAccountName}}
	}
	for _, granted := range install.ClusterPermissions {
		global := metav1.ObjectMeta{Name: meta.Name}
		add(rbacv1.SchemeGroupVersion.String(), "ClusterRole", &rbacv1.ClusterRole{ObjectMeta: global, Rules: granted.Rules})
		add(rbacv1.SchemeGroupVersion.String(), "ClusterRoleBinding", &rbacv1.ClusterRoleBinding{
			ObjectMeta: global, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: meta.Name}, Subjects: to(granted),
		})
	}
	for _, granted := range install.Permissions {
		add(rbacv1.SchemeGroupVersion.String(), "Role", &rbacv1.Role{ObjectMeta: meta, Rules: granted.Rules})
		add(rbacv1.SchemeGroupVersion.String(), "RoleBinding", &rbacv1.RoleBinding{
			ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: meta.Name}, Subjects: to(granted),
		})
	}
	for _, d := range install.Deployments {
		add(appsv1.SchemeGroupVersion.String(), "Deployment", &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: d.Name, Labels: d.Label}, Spec: d.Spec})
	}
	return version, all
}

// mount makes a certificate for this machine, and lets the pods find it where the Operator Lifecycle Manager mounts one.
func mount(t *testing.T, deployment *unstructured.Unstructured) (authority []byte) {
	t.Helper()
	certificate, key, err := cert.GenerateSelfSignedCertKey("localhost", nil, []string{"localhost"})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, data := range map[string][]byte{"tls.crt": certificate, "tls.key": key} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	containers, _, _ := unstructured.NestedSlice(deployment.Object, "spec", "template", "spec", "containers")
	variables, _, _ := unstructured.NestedSlice(containers[0].(map[string]any), "env")
	for _, variable := range variables {
		if v := variable.(map[string]any); v["name"] == "WEBHOOK_CERT_DIR" {
			v["value"] = dir
		}
	}
	containers[0].(map[string]any)["env"] = variables
	if err := unstructured.SetNestedSlice(deployment.Object, containers, "spec", "template", "spec", "containers"); err != nil {
		t.Fatal(err)
	}
	return certificate
}

// configure writes the configurations of webhooks, which call the first pod.
func (o *operation) configure(definitions []webhookDefinition, authority []byte) {
	o.t.Helper()
	for _, definition := range definitions {
		webhook := definition.ValidatingWebhook
		webhook.Name = definition.GenerateName
		address := fmt.Sprintf("https://localhost:%d%s", o.pods[0].ports["webhook"], definition.Path)
		webhook.ClientConfig = admissionregistrationv1.WebhookClientConfig{URL: &address, CABundle: authority}
		meta := metav1.ObjectMeta{Name: definition.GenerateName}
		var configuration client.Object = &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: meta, Webhooks: []admissionregistrationv1.ValidatingWebhook{webhook}}
		if definition.Type == "MutatingAdmissionWebhook" {
			configuration = &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: meta, Webhooks: []admissionregistrationv1.MutatingWebhook{{
				Name: webhook.Name, ClientConfig: webhook.ClientConfig, Rules: webhook.Rules, FailurePolicy: webhook.FailurePolicy,
				MatchPolicy: webhook.MatchPolicy, SideEffects: webhook.SideEffects, TimeoutSeconds: webhook.TimeoutSeconds, AdmissionReviewVersions: webhook.AdmissionReviewVersions,
			}}}
		}
		o.create(o.t, configuration)
	}
}

// What the Operator Lifecycle Manager makes of the bundle works: under exactly its permissions, with its certificate and its
// configurations of webhooks.
func TestTheBundleWorks(t *testing.T) {
	w := newWorld(t)
	w.install(t, manifests(t, "config/crd")) // the bundle has only the definitions that the operator owns
	version, all := bundle(t, "config/olm", "operators")
	authority := mount(t, one(t, "Deployment", all))
	w.create(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "operators"}})
	meeting := one(t, "ClusterKopfPeering", manifests(t, "config/samples"))
	w.install(t, []*unstructured.Unstructured{meeting})
	o := deploy(t, w, all, meeting)
	o.measures()
	o.configure(version.Spec.Webhooks, authority)
	o.Eventually(o.tried(map[string]any{"size": int64(3)})).Should(testenv.HavePath("spec.color", "grey"))
	o.Eventually(func() error {
		_, err := o.tried(map[string]any{"my size": int64(3)})()
		return err
	}).Should(rejected)
	o.handles(sample(t, "default"))
	o.updates()
	o.restores()
	o.outlives()
	o.Expect(o.Client().Delete(t.Context(), o.object.DeepCopy())).To(gomega.Succeed())
	o.Eventually(o.Exists(o.object)).Should(gomega.BeFalse())
	for _, p := range o.pods {
		p.stop()
	}

	requests := o.journal.Of(t, o.account())
	o.Expect(audit.Refused(requests)).To(gomega.BeEmpty())
	grants := slices.DeleteFunc(audit.Grants(t, all), func(g audit.Grant) bool { return g.User != o.account() })
	o.Expect(grants).NotTo(gomega.BeEmpty())
	o.Expect(audit.Unused(grants, requests, elsewhere)).To(gomega.BeEmpty())
	for _, object := range all {
		o.Expect(o.Client().Delete(t.Context(), object.DeepCopy())).To(gomega.Succeed())
		o.Eventually(o.Exists(object)).Should(gomega.BeFalse(), "%s %s", object.GetKind(), object.GetName())
	}
}
