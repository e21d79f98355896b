package posting

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/test/testenv"
)

// chat is a handler that logs a lot.
func chat(_ context.Context, c *kopf.Change) error {
	c.Logger().Info("Here we are.")
	c.Logger().Error(nil, "That is it.")
	return nil
}

func TestHandlersWorkWithoutPermissionToPost(t *testing.T) {
	s := newScene(t, kopf.Settings{})
	s.allow(
		rbacv1.PolicyRule{APIGroups: []string{"kopf.dev"}, Resources: []string{"kopfexamples", "kopfexamples/status"}, Verbs: []string{"get", "list", "watch", "patch"}},
		rbacv1.PolicyRule{APIGroups: []string{"apiextensions.k8s.io"}, Resources: []string{"customresourcedefinitions"}, Verbs: []string{"list", "watch"}},
	)
	s.OnCreate(examples, chat)
	s.start()
	one, two := s.create("one"), s.create("two")
	s.expectHandled(2)
	s.Eventually(func() string { return s.requests.Apart().String() }).Should(gomega.Equal("8 POST events"))
	s.Expect(s.logs.With("allow the operator to create and patch events")).To(gomega.HaveLen(1))
	s.Expect(s.logs.With("Here we are.")).To(gomega.HaveLen(2))
	s.Expect(cluster.Events(one)()).To(gomega.BeEmpty())
	s.Expect(cluster.Events(two)()).To(gomega.BeEmpty())
}

// allow runs the operator as a user with these permissions in its namespace.
func (s *scene) allow(rules ...rbacv1.PolicyRule) {
	s.t.Helper()
	named := metav1.ObjectMeta{Name: s.namespace}
	s.Expect(cluster.Client().Create(s.t.Context(), &rbacv1.ClusterRole{ObjectMeta: named, Rules: rules})).To(gomega.Succeed())
	s.Expect(cluster.Client().Create(s.t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: named,
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: s.namespace},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: s.namespace}},
	})).To(gomega.Succeed())
	s.config.Impersonate.UserName = s.namespace
}

func TestLinesSurviveAShortOutage(t *testing.T) {
	s := newScene(t, kopf.Settings{})
	var refused atomic.Int32
	s.config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return testenv.RoundTripper(func(r *http.Request) (*http.Response, error) {
			if strings.HasSuffix(r.URL.Path, "/events") && refused.Add(1) == 1 {
				return nil, errors.New("connection refused")
			}
			return next.RoundTrip(r)
		})
	})
	s.OnCreate(examples, chat)
	obj := s.start().create("one")
	s.expectHandled(1)
	s.Eventually(cluster.Events(obj)).Should(gomega.ContainElements("Normal Logging: Here we are.", "Error Logging: That is it."))
	s.Expect(refused.Load()).To(gomega.BeNumerically(">", 1))
}
