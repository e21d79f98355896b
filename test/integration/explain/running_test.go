package explain

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kopf-go/kopf/pkg/inspect"
	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/test/testenv"
)

// token returns a token of a new service account, which may ask operators if that is permitted.
func (s *scene) token(name string, permitted bool) string {
	s.t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name}}
	s.Expect(cluster.Client().Create(s.t.Context(), account)).To(gomega.Succeed())
	request := &authenticationv1.TokenRequest{}
	s.Expect(cluster.Client().SubResource("token").Create(s.t.Context(), account, request)).To(gomega.Succeed())
	if !permitted {
		return request.Status.Token
	}
	meta := metav1.ObjectMeta{Name: s.namespace + "-" + name}
	s.Expect(cluster.Client().Create(s.t.Context(), &rbacv1.ClusterRole{
		ObjectMeta: meta, Rules: []rbacv1.PolicyRule{{NonResourceURLs: []string{"/activity"}, Verbs: []string{"get"}}},
	})).To(gomega.Succeed())
	s.Expect(cluster.Client().Create(s.t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: meta.Name},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: s.namespace, Name: name}},
	})).To(gomega.Succeed())
	return request.Status.Token
}

// now returns what explain --running would say.
func (s *scene) now(name string, at inspect.Endpoint) (*inspect.Explanation, error) {
	s.t.Helper()
	c, target := s.connect(), inspect.Target{Kind: "kopfexample", Namespace: s.namespace, Name: name}
	said, err := c.Explain(s.t.Context(), target)
	s.Expect(err).NotTo(gomega.HaveOccurred())
	return said, c.AddNow(s.t.Context(), target, said, at)
}

func TestARunningOperatorIsAsked(t *testing.T) {
	s := newScene(t)
	address, called := testenv.FreeAddress(t), make(chan error)
	s.settings.Name, s.settings.Metrics.Address, s.settings.Metrics.Secure = "running.example.com", address, true
	s.OnCreate(examples, func(ctx context.Context, _ *kopf.Change) error {
		select {
		case err := <-called:
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	}, kopf.ID("slow"), kopf.Limit(1))
	s.Daemon(examples, func(_ context.Context, c *kopf.Task) error { <-c.Stopped(); return nil }, kopf.ID("watch"))
	s.start()
	at := inspect.Endpoint{URL: "https://" + address, Token: s.token("reader", true)}
	said := func(name string) func() (*inspect.Explanation, error) {
		return func() (*inspect.Explanation, error) { return s.now(name, at) }
	}

	s.create("one")
	s.answers("a handler is running", []string{"create", "slow (create): due", "watch (daemon): background", "daemon watch: running", "slow is running"}, said("one"))
	e, err := s.now("one", at)
	s.Expect(err).NotTo(gomega.HaveOccurred())
	s.Expect(e.Now.Running).To(gomega.Equal(1))
	s.create("other")
	s.answers("a handler waits for a slot", []string{"create", "slow (create): due", "watch (daemon): background", "daemon watch: running", "idle", "slow waits for a slot"}, said("other"))
	called <- kopf.Temporary(errors.New("not yet"), time.Hour)
	s.answers("a handler waits", []string{"create", "slow (create): waiting", "watch (daemon): background", "daemon watch: running", "looks later"}, said("one"))
	called <- nil
	s.answers("a handler has ended", []string{"noop", "slow (create): done", "watch (daemon): background", "daemon watch: running", "idle"}, said("other"))

	for token, want := range map[string]string{
		s.token("stranger", false): "the account of the token may not ask the operator: bind it to a ClusterRole with the rule {nonResourceURLs: [/activity], verbs: [get]}",
		"wrong":                    "the operator does not accept the token: get one by kubectl create token SERVICEACCOUNT, and pass its file by --token-file",
	} {
		_, err := s.now("one", inspect.Endpoint{URL: at.URL, Token: token})
		s.Expect(err).To(gomega.MatchError(want))
	}
	_, err = s.now("one", inspect.Endpoint{URL: "http://" + address})
	s.Expect(err).To(gomega.MatchError(gomega.ContainSubstring("is no endpoint of secure metrics")))
}

func TestTheLeaderIsFoundByItsLease(t *testing.T) {
	s := newScene(t)
	s.settings.Name = "shops.example.com"
	leader := func() (inspect.Pod, error) {
		return s.connect().ReplicaOf(t.Context(), inspect.Target{Kind: "kopfexample", Namespace: s.namespace, Name: "one"}, s.namespace)
	}
	_, err := leader()
	s.Expect(err).To(gomega.MatchError(gomega.ContainSubstring(`the leader is unknown without the lease "shops.example.com" in the namespace "` + s.namespace + `" (set --operator-namespace, or, for an operator without leader election, forward the port`)))

	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: s.settings.Name}}
	s.Expect(cluster.Client().Create(t.Context(), lease)).To(gomega.Succeed())
	_, err = leader()
	s.Expect(err).To(gomega.MatchError(gomega.ContainSubstring("no operator holds the lease")))
	s.patch(lease, `{"spec":{"holderIdentity":"operator-5f_b1a2"}}`)
	_, err = leader()
	s.Expect(err).To(gomega.MatchError(gomega.ContainSubstring("the leader operator-5f_b1a2 is no pod in the namespace")))

	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "operator-5f"}, Spec: corev1.PodSpec{Containers: []corev1.Container{
		{Name: "main", Image: "main", Ports: []corev1.ContainerPort{{Name: "metrics", ContainerPort: 8443}}},
	}}}
	s.Expect(cluster.Client().Create(t.Context(), pod)).To(gomega.Succeed())
	found, err := leader()
	s.Expect(err).NotTo(gomega.HaveOccurred())
	s.Expect(found).To(gomega.Equal(inspect.Pod{Namespace: s.namespace, Name: "operator-5f", Port: "8443"}))
	s.settings.Metrics.Address = ":9443"
	found, err = leader()
	s.Expect(err).NotTo(gomega.HaveOccurred())
	s.Expect(found.Port).To(gomega.Equal("9443"))
}

// Without authorization, there is no endpoint: it has the names of objects.
func TestInsecureMetricsHaveNoActivity(t *testing.T) {
	s := newScene(t)
	address := testenv.FreeAddress(t)
	s.settings.Name, s.settings.Metrics.Address = "insecure.example.com", address
	s.OnCreate(examples, create, kopf.ID("createFn"))
	s.start()
	status := func(path string) func() int {
		return func() int {
			answer, err := http.Get("http://" + address + path) //nolint:gosec,noctx // it is the address of the test
			if err != nil {
				return 0
			}
			_ = answer.Body.Close()
			return answer.StatusCode
		}
	}
	s.Eventually(status("/metrics")).Should(gomega.Equal(http.StatusOK))
	s.Expect(status("/activity")()).To(gomega.Equal(http.StatusNotFound))
}
