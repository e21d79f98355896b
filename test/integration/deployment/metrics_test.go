package deployment

import (
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// measures reads the metrics of every replica with the token of an account that has the role,
// and fails without it.
func (o *operation) measures() {
	o.t.Helper()
	token := o.reader("prometheus", o.deployment.Name+"-metrics-reader")
	for _, p := range o.pods {
		o.Eventually(p.get).WithArguments("metrics", "/metrics", token).Should(gomega.ContainSubstring("kopf_"))
		o.Expect(p.get("metrics", "/metrics", "")).Error().To(gomega.MatchError(gomega.ContainSubstring("401")))
	}
}

// reader returns the token of a new account with a role.
func (o *operation) reader(name, role string) (token string) {
	o.t.Helper()
	namespace := o.deployment.Namespace
	o.create(o.t, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: namespace, Name: name}},
	})
	return o.token(o.t, namespace, name)
}

// get reads what the pod serves at a port with HTTPS.
func (p *pod) get(port, path, token string) (string, error) {
	request, err := http.NewRequest(http.MethodGet, fmt.Sprintf("https://127.0.0.1:%d%s", p.ports[port], path), nil)
	if err != nil {
		return "", err
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}} // the certificate is self-signed
	defer transport.CloseIdleConnections()
	response, err := (&http.Client{Timeout: 10 * time.Second, Transport: transport}).Do(request)
	if err != nil {
		return "", err
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if response.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%s: %s", response.Status, text)
	}
	return string(text), err
}
