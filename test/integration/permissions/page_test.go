package permissions

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/cert"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/rbac"
	"github.com/kopf-go/kopf/test/operators"
	"github.com/kopf-go/kopf/test/testenv"
)

// person returns a token of an account, which may look at pages if that is permitted.
func (b *bench) person(name string, permitted bool) string {
	b.t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: name}}
	b.Expect(cluster.Client().Create(b.t.Context(), account)).To(gomega.Succeed())
	if permitted {
		meta := metav1.ObjectMeta{Name: b.namespace + "-" + name}
		role := &rbacv1.ClusterRole{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{{NonResourceURLs: []string{"/page"}, Verbs: []string{"get"}}}}
		binding := &rbacv1.ClusterRoleBinding{
			ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: meta.Name},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: b.namespace, Name: name}},
		}
		b.Expect(cluster.Client().Create(b.t.Context(), role)).To(gomega.Succeed())
		b.Expect(cluster.Client().Create(b.t.Context(), binding)).To(gomega.Succeed())
	}
	token := &authenticationv1.TokenRequest{}
	b.Expect(cluster.Client().SubResource("token").Create(b.t.Context(), account, token)).To(gomega.Succeed())
	return token.Status.Token
}

// visitor is a browser at the page of a running operator.
type visitor struct {
	*bench
	browser *http.Client
	page    string
}

func (b *bench) visit(address string) *visitor {
	b.t.Helper()
	cookies, err := cookiejar.New(nil)
	b.Expect(err).NotTo(gomega.HaveOccurred())
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: true} // the certificate is self-signed
	b.t.Cleanup(transport.CloseIdleConnections)
	return &visitor{b, &http.Client{Jar: cookies, Transport: transport}, "https://" + address}
}

// read returns the status and the text of an answer.
func (v *visitor) read(answer *http.Response, err error) (int, string) {
	if err != nil { // it does not listen yet
		return 0, err.Error()
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	v.Expect(err).NotTo(gomega.HaveOccurred())
	return answer.StatusCode, string(text)
}

func (v *visitor) get(path string) (int, string) {
	answer, err := v.browser.Get(v.page + path) //nolint:bodyclose // read closes it
	return v.read(answer, err)
}

// shows returns a function that returns a page.
func (v *visitor) shows(path string) func() string {
	return func() string {
		_, text := v.get(path)
		return text
	}
}

func (v *visitor) logIn(token string) (int, string) {
	answer, err := v.browser.PostForm(v.page+"/login", url.Values{"token": {token}}) //nolint:bodyclose // read closes it
	return v.read(answer, err)
}

// A running operator serves its page with exactly the derived roles, to those who may look, and without a write.
func TestDerivedRolesSufficeForThePage(t *testing.T) {
	t.Parallel()
	for name, adjust := range map[string]func(*kopf.Settings, string){
		"namespace": func(s *kopf.Settings, namespace string) { s.Scope.Namespaces = []string{namespace} },
		"manager":   func(s *kopf.Settings, namespace string) { s.Scope.Namespaces = []string{namespace} },
		"pattern": func(s *kopf.Settings, namespace string) {
			s.Scope.Namespaces = []string{namespace[:len(namespace)-1] + "*"}
		},
		"replicas": func(s *kopf.Settings, namespace string) {
			s.Scope.Namespaces = []string{namespace}
			s.Replicas.LeaderElection, s.Replicas.LeaseNamespace = true, namespace
		},
		"shards": func(s *kopf.Settings, namespace string) {
			s.Scope.Namespaces = []string{namespace}
			s.Replicas.Shards, s.Replicas.LeaseNamespace = 4, namespace
		},
	} {
		t.Run(name, func(t *testing.T) {
			b, registry := newBench(t), kopf.NewRegistry()
			declareAll(registry)
			settings := kopf.Settings{Name: b.name}
			settings.Persistence.Finalizer = b.namespace + ".example.com/finalizer"
			settings.Page.Address = testenv.FreeAddress(t)
			adjust(&settings, b.namespace)
			roles := b.derive(registry, settings)
			b.grant(rbac.YAML(b.name, roles, rbac.Account{Namespace: b.namespace, Name: "operator"}))
			start := b.startOperator
			if name == "manager" { // of another program
				start = b.startManager
			}
			t.Cleanup(start(b.config(), registry, settings))
			b.Expect(cluster.Client().Create(t.Context(), testenv.NewObject("KopfExample", b.namespace, "one", nil))).To(gomega.Succeed())

			v := b.visit(settings.Page.Address)
			b.Eventually(v.shows("/")).Should(gomega.ContainSubstring("kubectl create token SERVICEACCOUNT"))
			status, text := v.logIn(b.person("stranger", false))
			b.Expect(status).To(gomega.Equal(http.StatusForbidden), text)
			token := b.person("reader", true)
			b.Eventually(func() int { // until the authorizer knows the role
				status, _ := v.logIn(token)
				return status
			}).Should(gomega.Equal(http.StatusOK))
			b.Eventually(v.shows("/objects?name=one&namespace=" + b.namespace)).Should(gomega.ContainSubstring(">one</a>"))
			object := "/object?" + url.Values{"resource": {"kopfexamples.kopf.dev"}, "namespace": {b.namespace}, "name": {"one"}}.Encode()
			b.Expect(v.shows(object)()).To(gomega.SatisfyAll(gomega.ContainSubstring("What the operator is doing"), gomega.Not(gomega.ContainSubstring("are unknown"))))
			b.Expect(v.shows("/")()).To(gomega.SatisfyAll(gomega.ContainSubstring("of handlers, of which"), gomega.ContainSubstring("Log out")))
			b.Expect(v.shows("/operator")()).To(gomega.SatisfyAll(
				gomega.ContainSubstring("What the operator watches"), gomega.ContainSubstring("With the permissions of the operator"),
				gomega.Not(gomega.ContainSubstring("Something is unknown here")), gomega.Not(gomega.ContainSubstring("Missing permissions"))))
			status, _ = v.get("/request?verb=retry")
			b.Expect(status).To(gomega.Equal(http.StatusNotFound))
			b.Expect(b.refused()).To(gomega.BeEmpty())
		})
	}
}

// An operator without a page asks for nothing that only the page needs. With one that is not open, it does not either.
func TestAPageThatNobodyLooksAtSendsNoRequests(t *testing.T) {
	t.Parallel()
	b, registry := newBench(t), kopf.NewRegistry()
	declareAll(registry)
	settings := kopf.Settings{Name: b.name}
	settings.Scope.Namespaces = []string{b.namespace}
	settings.Persistence.Finalizer = b.namespace + ".example.com/finalizer"
	settings.Page.Address = testenv.FreeAddress(t)
	b.grant(rbac.YAML(b.name, b.derive(registry, settings), rbac.Account{}))
	operators.Start(t, b.config(), b.namespace, registry, func(o *kopf.Options) { o.Settings = settings })
	v := b.visit(settings.Page.Address)
	b.Eventually(v.shows("/")).Should(gomega.ContainSubstring("Log in"), "it listens")
	b.handles("one")
	watches := 0
	for _, entry := range requests.Of(t, b.user) {
		b.Expect(entry.RequestURI).NotTo(gomega.MatchRegexp("/(tokenreviews|subjectaccessreviews)"), "the page asks only for people who have a token")
		if entry.Verb == "watch" && strings.Contains(entry.RequestURI, "/kopfexamples?") {
			watches++
		}
	}
	b.Expect(watches).To(gomega.Equal(1), "the operator watches the objects, and the page does not")
}

// The page has the certificate of its files, and the next one when they change.
func TestThePageHasTheCertificateOfFiles(t *testing.T) {
	t.Parallel()
	b, registry := newBench(t), kopf.NewRegistry()
	declareAll(registry)
	dir := t.TempDir()
	renew := func() *x509.CertPool {
		certificate, key, err := cert.GenerateSelfSignedCertKey("localhost", nil, nil)
		b.Expect(err).NotTo(gomega.HaveOccurred())
		b.Expect(os.WriteFile(filepath.Join(dir, "tls.key"), key, 0o600)).To(gomega.Succeed())
		b.Expect(os.WriteFile(filepath.Join(dir, "tls.crt"), certificate, 0o600)).To(gomega.Succeed())
		trusted := x509.NewCertPool()
		trusted.AppendCertsFromPEM(certificate)
		return trusted
	}
	settings := kopf.Settings{Name: b.name}
	settings.Scope.Namespaces = []string{b.namespace}
	settings.Page.Address = testenv.FreeAddress(t)
	settings.Page.CertFile, settings.Page.KeyFile = filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	first := renew()
	b.grant(rbac.YAML(b.name, b.derive(registry, settings), rbac.Account{}))
	operators.Start(t, b.config(), b.namespace, registry, func(o *kopf.Options) { o.Settings = settings })
	connect := func(trusted *x509.CertPool) func() error {
		return func() error {
			dialer := &tls.Dialer{Config: &tls.Config{RootCAs: trusted, ServerName: "localhost"}}
			connection, err := dialer.DialContext(t.Context(), "tcp", settings.Page.Address)
			if err != nil {
				return err
			}
			return connection.Close()
		}
	}
	b.Eventually(connect(first)).Should(gomega.Succeed())
	second := renew()
	b.Eventually(connect(second)).Should(gomega.Succeed())
	b.Expect(connect(first)()).To(gomega.MatchError(gomega.ContainSubstring("certificate")))
}
