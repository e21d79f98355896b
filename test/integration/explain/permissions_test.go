package explain

import (
	"context"
	"testing"

	"github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/inspect"
	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/model/rollout"
)

// What a person may not read is unknown, and the rest is said.
func TestMissingPermissionsAreSaid(t *testing.T) {
	s := newScene(t)
	s.settings.Name = "shops.example.com"
	s.Ensure(examples, func(context.Context, *kopf.Change) ([]client.Object, error) { return nil, nil }, kopf.ID("shop"))
	s.OnCreate(examples, create, kopf.ID("fn"), kopf.Revision("2"), kopf.Rollout(rollout.First(1)))
	obj := s.create("one")
	s.patch(obj, `{"metadata":{"annotations":{"kopf.zalando.org/kopf-children":"[\"ConfigMap\"]",
		"kopf.zalando.org/last-handled-configuration":"{\"spec\":{}}\n","kopf.zalando.org/handled-revisions":"{\"done\":{\"fn\":\"1\"}}"}}}`)
	user := "reader-of-" + s.namespace
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "reader"}, Rules: []rbacv1.PolicyRule{{APIGroups: []string{"kopf.dev"}, Resources: []string{"kopfexamples"}, Verbs: []string{"get"}}}}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: role.ObjectMeta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: user}},
	}
	s.Expect(cluster.Client().Create(t.Context(), role)).To(gomega.Succeed())
	s.Expect(cluster.Client().Create(t.Context(), binding)).To(gomega.Succeed())

	config := cluster.Config()
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{"system:authenticated"}}
	handlers, err := s.Declarations().Handlers(nil)
	s.Expect(err).NotTo(gomega.HaveOccurred())
	c, err := inspect.Connect(t.Context(), config, inspect.Program{Handlers: handlers, Settings: s.settings})
	s.Expect(err).NotTo(gomega.HaveOccurred())
	target := inspect.Target{Kind: "kopfexample", Namespace: s.namespace, Name: "one"}
	// The authorizer learns of the role soon.
	s.answers("", []string{"update", "remove spec: {}", "shop (ensure): due", "fn (create): waiting"}, func() (*inspect.Explanation, error) { return c.Explain(t.Context(), target) })
	_, err = c.Send(t.Context(), config, target, inspect.Request{Verb: "suspend"})
	s.Expect(err).To(gomega.MatchError(gomega.ContainSubstring("the request cannot be written to kopfexamples.kopf.dev/one: ")))
}
