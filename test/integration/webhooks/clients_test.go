package webhooks

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/client-go/util/keyutil"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/webhook/configurations"
	"github.com/kopf-go/kopf/pkg/webhook/servers"
)

// locate returns how the cluster calls the server of a validating webhook.
func locate(t *testing.T, name string) admissionregistrationv1.WebhookClientConfig {
	t.Helper()
	configuration := validating(name)
	if err := cluster.Client().Get(t.Context(), client.ObjectKeyFromObject(configuration), configuration); err != nil {
		t.Error(err)
		return admissionregistrationv1.WebhookClientConfig{}
	}
	return configuration.Webhooks[0].ClientConfig
}

func hostOf(address string) string {
	parsed, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return parsed.Host
}

func addressOf(s servers.Server) string { return net.JoinHostPort("localhost", strconv.Itoa(s.Port)) }

const review = `{
  "kind": "AdmissionReview",
  "apiVersion": "admission.k8s.io/v1",
  "request": {
    "uid": "1ca13837-ad60-4c9e-abb8-86f29d6c0e84",
    "kind": {"group": "kopf.dev", "version": "v1", "kind": "KopfExample"},
    "resource": {"group": "kopf.dev", "version": "v1", "resource": "kopfexamples"},
    "name": "kopf-example-1",
    "namespace": "default",
    "operation": "CREATE",
    "userInfo": {"username": "admin", "groups": ["system:masters"]},
    "object": {"apiVersion": "kopf.dev/v1", "kind": "KopfExample", "metadata": {"name": "kopf-example-1", "namespace": "default"}},
    "oldObject": null,
    "dryRun": true
  }
}`

// The walk-through of the specification: a self-signed certificate is both the
// certificate of the client and its CA.
//
// Specification: Admission control, "Authenticate apiservers", "Debugging with SSL".
func TestClientWithACertificate(t *testing.T) {
	g, dir := gomega.NewWithT(t), t.TempDir()
	certificate, key := clientCertificate(t, dir)
	payload := filepath.Join(dir, "review.json")
	g.Expect(os.WriteFile(payload, []byte(review), 0o600)).To(gomega.Succeed())
	server := local(t)
	server.ClientCAFile, server.CADump = certificate, filepath.Join(dir, "selfsigned.pem")
	run(t, cluster.Config(), server, managed("clients.kopf.dev"), configurations.Hook{ID: "a", Validating: true, Resource: configMaps})
	g.Eventually(names(t, "clients.kopf.dev")).Should(gomega.HaveLen(1))
	address := "https://ussser:passsw@" + addressOf(server)

	known := call(t, address, payload, "--insecure", "--cert", certificate, "--key", key)
	g.Expect(known.Response.UID).To(gomega.BeEquivalentTo("1ca13837-ad60-4c9e-abb8-86f29d6c0e84"))
	g.Expect(known.Response.Allowed).To(gomega.BeTrue())
	g.Expect(known.Response.Warnings).To(gomega.Equal([]string{"SSL peer is Example Common Name.", "The user is ussser."}))

	unknown := call(t, address, payload, "--cacert", server.CADump)
	g.Expect(unknown.Response.Warnings).To(gomega.Equal([]string{"The user is ussser."}))
}

// A server that requires a certificate rejects clients without one, including API
// servers: then the failure policy decides.
func TestServerThatRequiresACertificate(t *testing.T) {
	g, dir, namespace := gomega.NewWithT(t), t.TempDir(), cluster.Namespace(t)
	certificate, key := clientCertificate(t, dir)
	server := local(t)
	server.ClientCAFile, server.ClientAuth = certificate, tls.RequireAndVerifyClientCert
	run(t, cluster.Config(), server, managed("requiring.kopf.dev"), configurations.Hook{ID: "a", Validating: true, Resource: configMaps})
	g.Eventually(names(t, "requiring.kopf.dev")).Should(gomega.HaveLen(1))
	g.Eventually(func() error { return try(t.Context(), namespace, "a") }).Should(gomega.MatchError(gomega.ContainSubstring("certificate required")))
	payload := filepath.Join(dir, "review.json")
	g.Expect(os.WriteFile(payload, []byte(review), 0o600)).To(gomega.Succeed())
	answer := call(t, "https://"+addressOf(server), payload, "--insecure", "--cert", certificate, "--key", key)
	g.Expect(answer.Response.Warnings).To(gomega.Equal([]string{"SSL peer is Example Common Name."}))
}

// clientCertificate writes the files that "openssl req -x509" writes.
func clientCertificate(t *testing.T, dir string) (certificateFile, keyFile string) {
	t.Helper()
	g := gomega.NewWithT(t)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	template := &x509.Certificate{
		Subject:   pkix.Name{CommonName: "Example Common Name"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	private, err := keyutil.MarshalPrivateKeyToPEM(key)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	certificateFile, keyFile = filepath.Join(dir, "client-cert.pem"), filepath.Join(dir, "client-key.pem")
	g.Expect(os.WriteFile(certificateFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600)).To(gomega.Succeed())
	g.Expect(os.WriteFile(keyFile, private, 0o600)).To(gomega.Succeed())
	return certificateFile, keyFile
}

// call sends the payload with a client in Go, and with curl if it is installed. Both must
// get the same answer.
func call(t *testing.T, address, payload string, options ...string) admissionv1.AdmissionReview {
	t.Helper()
	g := gomega.NewWithT(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	answer, err := post(ctx, address, payload, options)
	if program, missing := exec.LookPath("curl"); missing == nil {
		command := exec.CommandContext(ctx, program, append([]string{"--silent", "--show-error", "--noproxy", "*", address, "-d", "@" + payload}, options...)...)
		byCurl, failure := command.CombinedOutput()
		g.Expect(failure).NotTo(gomega.HaveOccurred(), "%s", byCurl)
		g.Expect(err).NotTo(gomega.HaveOccurred())
		g.Expect(byCurl).To(gomega.Equal(answer), "curl and the client in Go")
	}
	g.Expect(err).NotTo(gomega.HaveOccurred())
	var result admissionv1.AdmissionReview
	g.Expect(json.Unmarshal(answer, &result)).To(gomega.Succeed(), "%s", answer)
	g.Expect(result.Response).NotTo(gomega.BeNil(), "%s", answer)
	return result
}

// post is a client in Go that understands the options of curl that are used here.
func post(ctx context.Context, address, payload string, options []string) ([]byte, error) {
	config, given := &tls.Config{}, map[string]string{}
	for i := 0; i < len(options); i++ {
		if options[i] == "--insecure" {
			config.InsecureSkipVerify = true
			continue
		}
		given[options[i]] = options[i+1]
		i++
	}
	if given["--cacert"] != "" {
		bundle, err := os.ReadFile(given["--cacert"])
		if err != nil {
			return nil, err
		}
		config.RootCAs = x509.NewCertPool()
		config.RootCAs.AppendCertsFromPEM(bundle)
	}
	if given["--cert"] != "" {
		pair, err := tls.LoadX509KeyPair(given["--cert"], given["--key"])
		if err != nil {
			return nil, err
		}
		config.Certificates = []tls.Certificate{pair}
	}
	body, err := os.ReadFile(payload)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	transport := &http.Transport{TLSClientConfig: config}
	defer transport.CloseIdleConnections()
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	return io.ReadAll(response.Body)
}
