package deployment

import (
	"strings"
	"testing"

	"github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/test/testenv"
)

// The roles of users name their verbs, and none can write the status, which the operator owns.
func TestRolesOfUsers(t *testing.T) {
	for _, role := range of[rbacv1.ClusterRole](t, "ClusterRole", manifests(t, "config/rbac/users")) {
		for _, rule := range role.Rules {
			text := strings.Join(append(append(rule.Verbs, rule.Resources...), rule.APIGroups...), " ")
			if strings.Contains(text, "*") || strings.Contains(text, "/status") && text != "get kopfexamples/status kopf.dev" {
				t.Errorf("%s: %s", role.Name, text)
			}
		}
	}
}

// deed is something that a user tries.
type deed struct {
	what    string
	do      func(client.Client) error
	allowed string // the roles that allow it
}

// Users with the roles can do what the names promise, and nothing else.
func TestUsersActUnderTheirRoles(t *testing.T) {
	w := &world{Cluster: testenv.Start(t, testenv.Options{CRDs: []string{testenv.ExampleCRDs}})}
	w.install(t, manifests(t, "config/rbac/users"))
	namespace, ctx := w.Namespace(t), t.Context()
	object := func() client.Object { return testenv.NewObject("KopfExample", namespace, "one", nil) }
	patch := func(text string) client.Patch { return client.RawPatch("application/merge-patch+json", []byte(text)) }
	deeds := []deed{
		{"look", func(c client.Client) error {
			return c.Get(ctx, client.ObjectKeyFromObject(object()), testenv.NewObject("KopfExample", "", "", nil))
		}, "viewer editor admin"},
		{"change", func(c client.Client) error { return c.Patch(ctx, object(), patch(`{"spec":{"field":"changed"}}`)) }, "editor admin"},
		{"request", func(c client.Client) error {
			return c.Patch(ctx, object(), patch(`{"metadata":{"annotations":{"kopf.zalando.org/request-suspend":"forever"}}}`))
		}, "editor admin"},
		{"write the status", func(c client.Client) error { return c.Status().Patch(ctx, object(), patch(`{"status":{"x":"y"}}`)) }, ""},
		{"delete", func(c client.Client) error { return c.Delete(ctx, object(), client.DryRunAll) }, "editor admin"},
		{"delete all", func(c client.Client) error {
			return c.DeleteAllOf(ctx, object(), client.InNamespace(namespace), client.DryRunAll)
		}, "admin"},
		{"create", func(c client.Client) error {
			return c.Create(ctx, testenv.NewObject("KopfExample", namespace, "two", nil), client.DryRunAll)
		}, "editor admin"},
	}
	w.create(t, object())
	for _, role := range []string{"viewer", "editor", "admin"} {
		t.Run(role, func(t *testing.T) {
			user := w.user(t, namespace, role)
			for _, d := range deeds {
				if err := d.do(user); strings.Contains(d.allowed, role) && err != nil || !strings.Contains(d.allowed, role) && !apierrors.IsForbidden(err) {
					t.Errorf("%s: %v", d.what, err)
				}
			}
		})
	}
}

// user returns a client of a user with a role in the namespace.
func (w *world) user(t *testing.T, namespace, role string) client.Client {
	t.Helper()
	w.create(t, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: role},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "kopf-manager-kopfexample-" + role},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: role}},
	})
	config := w.Config()
	config.Impersonate = rest.ImpersonationConfig{UserName: role, Groups: []string{"system:authenticated"}}
	user, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	looks := func() error {
		return user.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "one"}, testenv.NewObject("KopfExample", "", "", nil))
	}
	gomega.NewWithT(t).Eventually(looks).Should(gomega.Succeed(), "the authorizer learns of the binding soon")
	return user
}
