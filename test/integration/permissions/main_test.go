// Package permissions tests that the roles that are derived from the declarations of operators are
// sufficient, on a real API server with authorization.
package permissions

import (
	"bytes"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/onsi/gomega"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/rbac"
	"github.com/kopf-go/kopf/pkg/reconcile/discovery"
	"github.com/kopf-go/kopf/test/testenv"
)

var (
	cluster  *testenv.Cluster
	examples = kopf.Resource("kopf.dev", "kopfexamples")
)

func TestMain(m *testing.M) { testenv.Main(m, &cluster, testenv.Options{}) }

// bench is a namespace, and a user without any permissions but those that are granted.
type bench struct {
	*gomega.WithT
	t         *testing.T
	namespace string
	user      string
	refused   atomic.Int32 // requests
}

func newBench(t *testing.T) *bench {
	t.Helper()
	namespace := cluster.Namespace(t)
	return &bench{WithT: gomega.NewWithT(t), t: t, namespace: namespace, user: "operator-" + namespace}
}

// derive returns the roles of an operator.
func (b *bench) derive(registry *kopf.Registry, s kopf.Settings) []rbac.Role {
	b.t.Helper()
	handlers, err := registry.Handlers(scheme.Scheme)
	b.Expect(err).NotTo(gomega.HaveOccurred())
	config := cluster.Config()
	httpClient, err := rest.HTTPClientFor(config)
	b.Expect(err).NotTo(gomega.HaveOccurred())
	source, err := discovery.NewSource(config, httpClient)
	b.Expect(err).NotTo(gomega.HaveOccurred())
	present, err := source.Resources(b.t.Context())
	b.Expect(err).NotTo(gomega.HaveOccurred())
	roles, problems := rbac.Derive(rbac.Input{Handlers: handlers, Needs: registry.DeclaredNeeds(), Settings: s, Snapshot: present, Namespace: b.namespace})
	b.Expect(problems).To(gomega.BeEmpty())
	return roles
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
		binding.Object["subjects"] = []any{map[string]any{"kind": "User", "name": b.user, "apiGroup": "rbac.authorization.k8s.io"}}
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

// config connects as the user, and counts what is refused.
func (b *bench) config() *rest.Config {
	config := cluster.Config()
	config.Impersonate = rest.ImpersonationConfig{UserName: b.user, Groups: []string{"system:authenticated"}}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return transport(func(request *http.Request) (*http.Response, error) {
			response, err := next.RoundTrip(request)
			if err == nil && response.StatusCode == http.StatusForbidden {
				body, _ := io.ReadAll(response.Body)
				_ = response.Body.Close()
				response.Body = io.NopCloser(bytes.NewReader(body))
				b.refused.Add(1)
				b.t.Logf("refused: %s %s: %s", request.Method, request.URL.Path, body)
			}
			return response, err
		})
	})
	return config
}

type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
