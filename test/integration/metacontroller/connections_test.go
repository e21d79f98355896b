package metacontroller

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/onsi/gomega"

	"github.com/kopf-go/kopf/test/testenv"
)

// A hook is called over TLS with the credentials of a Secret, also after they have changed.
func TestCredentials(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	password := make(chan string, 1)
	password <- "first"
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, given, _ := r.BasicAuth()
		want := <-password
		password <- want
		if given != want {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		b.serve(w, r)
	}))
	server.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert}
	server.StartTLS()
	t.Cleanup(server.Close)
	b.url = server.URL
	b.on("sync", func(*request) m { return m{"status": m{"seen": true}} })
	b.create(`{apiVersion: v1, kind: ConfigMap, metadata: {name: ca}, data: {ca.crt: %q}}`,
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	certificate, key := newCertificate(t)
	b.create(`{apiVersion: v1, kind: Secret, metadata: {name: client}, stringData: {tls.crt: %q, tls.key: %q}}`, certificate, key)
	user := b.create(`{apiVersion: v1, kind: Secret, metadata: {name: user}, stringData: {username: me, password: first}}`)
	file := composite + `
  endpointConfigs:
  - host: HOST
    caBundle: {configMapRef: {name: ca, namespace: NAMESPACE}}
    clientTLS: {secretRef: {name: client, namespace: NAMESPACE}}
    basicAuth: {secretRef: {name: user, namespace: NAMESPACE}}
`
	b.start(strings.NewReplacer("HOST", strings.TrimPrefix(server.URL, "https://"), "NAMESPACE", b.namespace).Replace(file))
	p := b.create(parent)
	b.eventually(p, m{"status.seen": true})

	<-password
	password <- "second"
	b.patch(user, `{"data":{"password":"`+base64.StdEncoding.EncodeToString([]byte("second"))+`"}}`)
	calls := len(b.called("sync"))
	b.patch(p, `{"spec":{"field":"second"}}`)
	b.eventually(p, m{"status.observedGeneration": int64(2)})
	b.Expect(len(b.called("sync"))).To(gomega.BeNumerically(">", calls))

	b.remove(user)
	<-password
	password <- "third"
	b.patch(p, `{"spec":{"field":"third"}}`)
	b.Eventually(cluster.Events(p)).Should(gomega.ContainElement(gomega.ContainSubstring("its Secret " + b.namespace + "/user cannot be read")))
	b.Expect(b.current(p)).To(testenv.HavePath("status.observedGeneration", int64(2)))
}

// newCertificate returns a certificate and its key in PEM.
func newCertificate(t *testing.T) (certificate, key []byte) {
	t.Helper()
	g := gomega.NewWithT(t)
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	signed, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	encoded, err := x509.MarshalPKCS8PrivateKey(private)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: signed}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded})
}
