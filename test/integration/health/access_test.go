package health

import (
	"crypto/tls"
	"net"
	"net/http"
	"testing"

	"github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/test/operators"
	"github.com/kopf-go/kopf/test/testenv"
)

// token creates a service account and returns a token for it.
func token(t *testing.T, g *gomega.WithT, namespace, name string) string {
	t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	g.Expect(cluster.Client().Create(t.Context(), account)).To(gomega.Succeed())
	request := &authenticationv1.TokenRequest{}
	g.Expect(cluster.Client().SubResource("token").Create(t.Context(), account, request)).To(gomega.Succeed())
	return request.Status.Token
}

// permit permits a service account to read the metrics.
func permit(t *testing.T, g *gomega.WithT, namespace, account string) {
	t.Helper()
	meta := metav1.ObjectMeta{Name: namespace + "-reader"}
	g.Expect(cluster.Client().Create(t.Context(), &rbacv1.ClusterRole{
		ObjectMeta: meta, Rules: []rbacv1.PolicyRule{{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}}},
	})).To(gomega.Succeed())
	g.Expect(cluster.Client().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: meta.Name},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: account}},
	})).To(gomega.Succeed())
}

func TestSecureMetricsNeedPermission(t *testing.T) {
	t.Parallel()
	g, registry, address, namespace := gomega.NewWithT(t), kopf.NewRegistry(), testenv.FreeAddress(t), cluster.Namespace(t)
	registry.OnCreate(examples, succeed, kopf.ID("create_fn"))
	reader, stranger := token(t, g, namespace, "reader"), token(t, g, namespace, "stranger")
	permit(t, g, namespace, "reader")
	operators.Start(t, cluster.Config(), namespace, registry, func(o *kopf.Options) {
		o.Settings.Metrics.Address, o.Settings.Metrics.Secure, o.Settings.Name = address, true, t.Name()
	})
	insecure := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}} // the certificate is self-signed
	t.Cleanup(insecure.CloseIdleConnections)
	asked := func(token string) func() answer {
		return func() answer { return ask(insecure, "https://"+address+"/metrics", token) }
	}
	g.Eventually(asked("")).Should(says(http.StatusUnauthorized))
	g.Expect(asked("wrong")()).To(says(http.StatusUnauthorized))
	g.Expect(asked(stranger)()).To(says(http.StatusForbidden))
	for _, secret := range []string{"", "wrong", stranger} {
		g.Expect(asked(secret)().Body).NotTo(gomega.ContainSubstring("kopf_"))
	}
	g.Eventually(asked(reader)).Should(says(http.StatusOK, "kopf_ready{", t.Name()))
	g.Expect(ask(http.DefaultClient, "http://"+address+"/metrics", reader).Status).NotTo(gomega.Equal(http.StatusOK), "plain HTTP must fail")
}

func TestOldVersionsOfTLSAreRejected(t *testing.T) {
	t.Parallel()
	g, registry, address, namespace := gomega.NewWithT(t), kopf.NewRegistry(), testenv.FreeAddress(t), cluster.Namespace(t)
	registry.OnCreate(examples, succeed, kopf.ID("create_fn"))
	operators.Start(t, cluster.Config(), namespace, registry, func(o *kopf.Options) {
		o.Settings.Metrics.Address, o.Settings.Metrics.Secure, o.Settings.Name = address, true, t.Name()
	})
	dial := func(config *tls.Config) func() error {
		config.InsecureSkipVerify = true // the certificate is self-signed
		return func() error {
			connection, err := tls.Dial("tcp", address, config)
			if err == nil {
				_ = connection.Close()
			}
			return err
		}
	}
	g.Eventually(dial(&tls.Config{MinVersion: tls.VersionTLS12})).Should(gomega.Succeed())
	g.Expect(dial(&tls.Config{MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11})()).NotTo(gomega.Succeed())
}

func TestAddressInUseStopsTheOperator(t *testing.T) {
	t.Parallel()
	g, registry, address, namespace := gomega.NewWithT(t), kopf.NewRegistry(), testenv.FreeAddress(t), cluster.Namespace(t)
	registry.OnCreate(examples, succeed, kopf.ID("create_fn"))
	taken, err := net.Listen("tcp", address)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	defer func() { _ = taken.Close() }()
	options := kopf.Options{Registry: registry, Config: cluster.Config(), Logger: testenv.Logger()}
	options.Settings.Scope.Namespaces = []string{namespace}
	options.Settings.Health.Address = address
	g.Expect(kopf.Run(t.Context(), options)).To(gomega.MatchError(gomega.And(
		gomega.ContainSubstring(address), gomega.ContainSubstring("settings.Health.Address"))))
}
