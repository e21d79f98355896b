// Package permissions tests that the roles that are derived from the declarations of operators are
// sufficient, on a real API server with authorization.
package permissions

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/rbac"
	"github.com/kopf-go/kopf/pkg/reconcile/discovery"
	"github.com/kopf-go/kopf/test/audit"
	"github.com/kopf-go/kopf/test/testenv"
)

var (
	cluster  *testenv.Cluster
	examples = kopf.Resource("kopf.dev", "kopfexamples")
)

// requests is the audit log of the API server.
var requests audit.Log

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "kopf-permissions-")
	if err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(dir) }() // the log is temporary
	requests = audit.Log(filepath.Join(dir, "audit.log"))
	flags, err := requests.Flags()
	if err != nil {
		panic(err)
	}
	if cluster, err = testenv.Open(testenv.Options{CRDs: []string{testenv.ExampleCRDs, testenv.FixtureCRDs, "config/crd/kopf.dev"}, Flags: flags}); err != nil {
		panic(err)
	}
	// The status of these peerings is a subresource. That of the others is not.
	peerings := testenv.Definition("zalando.org", "kopfpeerings", "KopfPeering", "v1")
	peerings.Spec.Versions[0].Subresources = &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}}
	if _, err := envtest.InstallCRDs(cluster.Config(), envtest.CRDInstallOptions{CRDs: []*apiextensionsv1.CustomResourceDefinition{peerings}}); err != nil {
		panic(err)
	}
	code := m.Run()
	if err := cluster.Close(); err != nil {
		panic(err)
	}
	return code
}

// bench is a namespace, and a service account without any permissions but those that are granted.
type bench struct {
	*gomega.WithT
	t         *testing.T
	namespace string
	name      string // of the roles
	user      string
}

// account is the service account.
func (b *bench) account() *corev1.ServiceAccount {
	return &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "operator"}}
}

func newBench(t *testing.T) *bench {
	t.Helper()
	namespace := cluster.Namespace(t)
	b := &bench{WithT: gomega.NewWithT(t), t: t, namespace: namespace, name: "operator-" + namespace, user: "system:serviceaccount:" + namespace + ":operator"}
	b.Expect(cluster.Client().Create(t.Context(), b.account())).To(gomega.Succeed())
	return b
}

// derive returns the roles of an operator.
func (b *bench) derive(registry *kopf.Registry, s kopf.Settings) []rbac.Role {
	b.t.Helper()
	roles, problems := rbac.Derive(b.input(registry, s))
	b.Expect(problems).To(gomega.BeEmpty())
	return roles
}

// input returns what roles are derived from.
func (b *bench) input(registry *kopf.Registry, s kopf.Settings) rbac.Input {
	b.t.Helper()
	handlers, err := registry.Declarations().Handlers(scheme.Scheme)
	b.Expect(err).NotTo(gomega.HaveOccurred())
	config := cluster.Config()
	httpClient, err := rest.HTTPClientFor(config)
	b.Expect(err).NotTo(gomega.HaveOccurred())
	source, err := discovery.NewSource(config, httpClient)
	b.Expect(err).NotTo(gomega.HaveOccurred())
	present, err := source.Resources(b.t.Context())
	b.Expect(err).NotTo(gomega.HaveOccurred())
	return rbac.Input{Handlers: handlers, Needs: registry.Declarations().Needs(), Settings: s, Snapshot: present, Namespace: b.namespace}
}

// grant applies the printed roles, and binds the user to them.
func (b *bench) grant(manifests string) {
	b.t.Helper()
	decoder := yaml.NewYAMLOrJSONDecoder(strings.NewReader(manifests), 4096)
	for {
		role := &unstructured.Unstructured{}
		if err := decoder.Decode(&role.Object); err == io.EOF { //nolint:errorlint // of decoders
			return
		} else if err != nil {
			b.t.Fatal(err, manifests)
		}
		if role.Object == nil || strings.HasSuffix(role.GetKind(), "Binding") {
			continue
		}
		binding := testenv.NewObject(role.GetKind()+"Binding", role.GetNamespace(), role.GetName(), nil)
		binding.SetAPIVersion("rbac.authorization.k8s.io/v1")
		binding.Object["roleRef"] = map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": role.GetKind(), "name": role.GetName()}
		binding.Object["subjects"] = []any{map[string]any{"kind": "ServiceAccount", "name": b.account().Name, "namespace": b.namespace}}
		for _, object := range []*unstructured.Unstructured{role, binding} {
			b.Expect(cluster.Client().Apply(b.t.Context(), client.ApplyConfigurationFromUnstructured(object), client.FieldOwner("test"), client.ForceOwnership)).To(gomega.Succeed(), manifests)
			b.t.Cleanup(func() { _ = cluster.Client().Delete(b.t.Context(), object) })
		}
		b.awaitGrant(role)
	}
}

// awaitGrant waits until the authorizer of the API server, which watches roles and their bindings,
// grants a role to the user.
func (b *bench) awaitGrant(role *unstructured.Unstructured) {
	b.t.Helper()
	var of rbacv1.Role // a ClusterRole has the same rules
	b.Expect(runtime.DefaultUnstructuredConverter.FromUnstructured(role.Object, &of)).To(gomega.Succeed())
	i := slices.IndexFunc(of.Rules, func(r rbacv1.PolicyRule) bool { return len(r.Resources) > 0 })
	if i < 0 {
		return
	}
	rule := of.Rules[i]
	resource, subresource, _ := strings.Cut(rule.Resources[0], "/")
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: b.user,
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: role.GetNamespace(), Verb: rule.Verbs[0], Group: rule.APIGroups[0], Resource: resource, Subresource: subresource,
			Name: strings.Join(rule.ResourceNames[:min(1, len(rule.ResourceNames))], ""),
		},
	}}
	b.Eventually(func() (bool, error) {
		asked := review.DeepCopy()
		err := cluster.Client().Create(b.t.Context(), asked)
		return asked.Status.Allowed, err
	}).Should(gomega.BeTrue(), "%s %s", role.GetKind(), role.GetName())
}

// config connects as the service account.
func (b *bench) config() *rest.Config {
	b.t.Helper()
	token := &authenticationv1.TokenRequest{}
	b.Expect(cluster.Client().SubResource("token").Create(b.t.Context(), b.account(), token)).To(gomega.Succeed())
	config := rest.AnonymousClientConfig(cluster.Config())
	config.BearerToken = token.Status.Token
	return config
}

// refused returns the requests of the service account that were refused.
func (b *bench) refused() []audit.Entry {
	b.t.Helper()
	all := requests.Of(b.t, b.user)
	b.Expect(all).NotTo(gomega.BeEmpty())
	return audit.Refused(all)
}
