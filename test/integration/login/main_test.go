// Package login tests operators whose credentials become invalid on a real API server. Tokens
// are bound to Secrets, so that a test can revoke them by deleting the Secret.
package login

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"

	"github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/connrotation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/login"
	"github.com/kopf-go/kopf/test/testenv"
)

var cluster *testenv.Cluster

func TestMain(m *testing.M) { testenv.Main(m, &cluster, testenv.Options{}) }

// issuer is the service account of an operator, which issues tokens for it.
type issuer struct {
	*gomega.WithT
	t         *testing.T
	namespace string
	dialer    *connrotation.Dialer

	mu     sync.Mutex
	closed chan struct{} // blocks logins until it is closed; nil if open
	stale  bool          // every login gets the last token
	last   grant
	logins int
}

// grant is a token with its Secret.
type grant struct {
	connection *login.Connection
	bound      *corev1.Secret
}

func newIssuer(t *testing.T) *issuer {
	i := &issuer{
		WithT: gomega.NewWithT(t), t: t, namespace: cluster.Namespace(t),
		dialer: connrotation.NewDialer((&net.Dialer{}).DialContext),
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: i.namespace, Name: "operator"}}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: i.namespace},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: i.namespace, Name: "operator"}},
	}
	for _, object := range []client.Object{account, binding} {
		i.Expect(cluster.Client().Create(t.Context(), object)).To(gomega.Succeed())
	}
	return i
}

// login is a login handler.
func (i *issuer) login(ctx context.Context) (map[string]*login.Connection, error) {
	i.mu.Lock()
	i.logins++
	closed := i.closed
	i.mu.Unlock()
	if closed != nil {
		select {
		case <-closed:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if !i.stale {
		issued, err := i.issue(ctx)
		if err != nil {
			return nil, err
		}
		i.last = issued
	}
	return map[string]*login.Connection{"issuer": i.last.connection}, nil
}

func (i *issuer) issue(ctx context.Context) (grant, error) {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: i.namespace, GenerateName: "token-"}}
	if err := cluster.Client().Create(ctx, secret); err != nil {
		return grant{}, err
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: i.namespace, Name: "operator"}}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{BoundObjectRef: &authenticationv1.BoundObjectReference{
		Kind: "Secret", APIVersion: "v1", Name: secret.Name, UID: secret.UID,
	}}}
	if err := cluster.Client().SubResource("token").Create(ctx, account, request); err != nil {
		return grant{}, err
	}
	config := rest.AnonymousClientConfig(cluster.Config())
	config.BearerToken, config.Dial = request.Status.Token, i.dialer.DialContext
	return grant{&login.Connection{Config: config, Expires: request.Status.ExpirationTimestamp.Time}, secret}, nil
}

// count returns the number of calls of the login handler.
func (i *issuer) count() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.logins
}

// revoke revokes the token, and waits until the API server rejects it: the server caches
// accepted tokens for some seconds.
func (i *issuer) revoke() {
	i.t.Helper()
	i.mu.Lock()
	last := i.last
	i.mu.Unlock()
	i.Expect(cluster.Client().Delete(i.t.Context(), last.bound)).To(gomega.Succeed())
	config := rest.CopyConfig(last.connection.Config)
	config.Dial = nil
	clientset, err := kubernetes.NewForConfig(config)
	i.Expect(err).NotTo(gomega.HaveOccurred())
	i.Eventually(func() error {
		_, err := clientset.CoreV1().Namespaces().Get(i.t.Context(), i.namespace, metav1.GetOptions{})
		if err == nil {
			return errors.New("the token is still accepted")
		}
		return ignore(apierrors.IsUnauthorized, err)
	}).Should(gomega.Succeed())
}

func ignore(expected func(error) bool, err error) error {
	if expected(err) {
		return nil
	}
	return err
}

// shut blocks logins until the returned function is called.
func (i *issuer) shut() (open func()) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.closed = make(chan struct{})
	return sync.OnceFunc(func() { close(i.closed) })
}

// refuse makes logins return the last token, or new ones again.
func (i *issuer) refuse(refuse bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.stale = refuse
}
