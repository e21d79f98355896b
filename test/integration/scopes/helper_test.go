package scopes

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/kopf"
)

// calls records the calls of handlers in order. It is safe for concurrent use.
type calls struct {
	mu   sync.Mutex
	list []string
}

func (c *calls) note(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.list = append(c.list, fmt.Sprintf(format, args...))
}

func (c *calls) all() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]string{}, c.list...)
}

// creations records the handled creations.
func (c *calls) creations(_ context.Context, change *kopf.Change) error {
	c.note("%s/%s", change.Namespace(), change.Name())
	return nil
}

// logger records the lines next to the calls.
func (c *calls) logger() logr.Logger {
	return funcr.New(func(_, line string) { c.note("%s", line) }, funcr.Options{})
}

// with counts the lines that have all of the parts.
func (c *calls) with(parts ...string) int {
	count := 0
lines:
	for _, line := range c.all() {
		for _, part := range parts {
			if !strings.Contains(line, part) {
				continue lines
			}
		}
		count++
	}
	return count
}

// admin returns a client of an administrator that knows definitions.
func admin(t *testing.T) client.Client {
	t.Helper()
	known := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{apiextensionsv1.AddToScheme, corev1.AddToScheme, rbacv1.AddToScheme} {
		if err := add(known); err != nil {
			t.Fatal(err)
		}
	}
	made, err := client.New(cluster.Config(), client.Options{Scheme: known})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func clientset(t *testing.T) *kubernetes.Clientset {
	t.Helper()
	set, err := kubernetes.NewForConfig(cluster.Config())
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func objectOf(group, kind, namespace, name string) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{Object: map[string]any{}}
	obj.SetAPIVersion(group + "/v1")
	obj.SetKind(kind)
	obj.SetNamespace(namespace)
	obj.SetName(name)
	return obj
}

// create creates an object as soon as the API server serves its resource.
func create(t *testing.T, g *gomega.WithT, obj *unstructured.Unstructured) {
	t.Helper()
	g.Eventually(func() error { return cluster.Client().Create(t.Context(), obj.DeepCopy()) }).Should(gomega.Succeed())
}

// namespace creates a namespace, and returns a function that deletes it.
func namespace(t *testing.T, g *gomega.WithT, name string) (remove func()) {
	t.Helper()
	set := clientset(t).CoreV1().Namespaces()
	created, err := set.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	g.Expect(err).NotTo(gomega.HaveOccurred())
	return func() { // no controller finalizes it here
		g.Expect(set.Delete(t.Context(), name, metav1.DeleteOptions{})).To(gomega.Succeed())
		created.Spec.Finalizers = nil
		created.ResourceVersion = ""
		_, err := set.Finalize(t.Context(), created, metav1.UpdateOptions{})
		g.Expect(err).NotTo(gomega.HaveOccurred())
	}
}

// account returns a service account with these permissions in the entire cluster.
func account(t *testing.T, g *gomega.WithT, namespace string, rules ...rbacv1.PolicyRule) *rest.Config {
	t.Helper()
	name, set := "operator-"+namespace, clientset(t)
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: name},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: namespace, Name: "operator"}},
	}
	user := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "operator"}}
	for _, obj := range []client.Object{role, binding, user} {
		g.Expect(admin(t).Create(t.Context(), obj)).To(gomega.Succeed())
	}
	issued, err := set.CoreV1().ServiceAccounts(namespace).CreateToken(t.Context(), "operator", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	g.Expect(err).NotTo(gomega.HaveOccurred())
	config := rest.AnonymousClientConfig(cluster.Config())
	config.BearerToken, config.QPS = issued.Status.Token, -1
	return config
}

// indexed adds the names of the objects to an index.
func indexed(_ context.Context, c *kopf.Indexed) (map[string]string, error) {
	return map[string]string{c.Namespace() + "/" + c.Name(): c.Name()}, nil
}
