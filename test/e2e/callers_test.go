package e2e

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// identifiesCallers checks what the handler sees of the API server, which has no client
// certificate here, and of a client with one.
func (e *example) identifiesCallers(t testing.TB, c *caller) {
	t.Helper()
	g := gomega.NewWithT(t)
	labeled := e.sample(t)
	labeled.SetName("labeled")
	labeled.SetLabels(map[string]string{"identified": "yes"})
	content, err := json.Marshal(labeled)
	g.Expect(err).NotTo(gomega.HaveOccurred())

	user, warnings := newClientWithWarnings(t)
	g.Expect(user.Create(t.Context(), labeled)).To(gomega.Succeed())
	g.Expect(warnings()).To(gomega.ContainElements(
		"The TLS peer is not identified.", "The user agent is kube-apiserver-admission.", "The authorization is absent."))

	review := admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: "AdmissionReview"},
		Request: &admissionv1.AdmissionRequest{
			UID: "1ca13837", Operation: admissionv1.Create, Namespace: labeled.GetNamespace(), Name: labeled.GetName(),
			Resource: metav1.GroupVersionResource{Group: "kopf.dev", Version: "v1", Resource: "kopfexamples"},
			UserInfo: authenticationv1.UserInfo{Username: "admin"},
			Object:   runtime.RawExtension{Raw: content},
		},
	}
	response := c.ask(t, e.webhook(t, "identifycaller.admission.kopf.dev").ClientConfig, review)
	g.Expect(response.UID).To(gomega.Equal(review.Request.UID))
	g.Expect(response.Allowed).To(gomega.BeTrue())
	g.Expect(response.Warnings).To(gomega.Equal([]string{
		"The TLS peer is Example Common Name.", "The user agent is a caller.", "The authorization is Basic.",
	}))
}

// newClientWithWarnings returns a client, and a function that returns the warnings so far.
func newClientWithWarnings(t testing.TB) (client.Client, func() []string) {
	t.Helper()
	received := &warnings{}
	config := cluster.Config()
	config.WarningHandler = received
	c, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return c, received.all
}

// warnings records what the API server warns of.
type warnings struct {
	mu   sync.Mutex
	list []string
}

// HandleWarningHeader implements rest.WarningHandler.
func (w *warnings) HandleWarningHeader(_ int, _, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.list = append(w.list, text)
}

func (w *warnings) all() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.list)
}

// caller is a client of webhook servers with a certificate, which is its own CA.
type caller struct {
	certificateFile string
	pair            tls.Certificate
}

func newCaller(t testing.TB, name string) *caller {
	t.Helper()
	g := gomega.NewWithT(t)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	template := &x509.Certificate{
		Subject:   pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	file := filepath.Join(t.TempDir(), "client-cert.pem")
	g.Expect(os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600)).To(gomega.Succeed())
	return &caller{file, tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}}
}

// ask sends a review as an API server does.
func (c *caller) ask(t testing.TB, hook admissionregistrationv1.WebhookClientConfig, review admissionv1.AdmissionReview) *admissionv1.AdmissionResponse {
	t.Helper()
	g := gomega.NewWithT(t)
	content, err := json.Marshal(review)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, *hook.URL, bytes.NewReader(content))
	g.Expect(err).NotTo(gomega.HaveOccurred())
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", "a caller")
	request.SetBasicAuth("user", "password")

	trusted := x509.NewCertPool()
	g.Expect(trusted.AppendCertsFromPEM(hook.CABundle)).To(gomega.BeTrue())
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trusted, Certificates: []tls.Certificate{c.pair}}}
	defer transport.CloseIdleConnections()
	answer, err := (&http.Client{Transport: transport}).Do(request)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	defer answer.Body.Close() //nolint:errcheck // it is read to its end
	var answered admissionv1.AdmissionReview
	g.Expect(json.NewDecoder(answer.Body).Decode(&answered)).To(gomega.Succeed())
	g.Expect(answered.Response).NotTo(gomega.BeNil())
	return answered.Response
}
