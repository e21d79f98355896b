package servers

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/onsi/gomega"

	"github.com/kopf-go/kopf/pkg/settings"
)

func TestClustersAreRecognized(t *testing.T) {
	tests := map[string]struct {
		certificate *x509.Certificate
		version     string
		want        string
	}{
		"K3s by its name":         {&x509.Certificate{Subject: pkix.Name{CommonName: "k3s"}}, "", K3dHost},
		"K3s by its organization": {&x509.Certificate{Subject: pkix.Name{Organization: []string{"k3s"}}}, "", K3dHost},
		"K3s by its CA":           {&x509.Certificate{Issuer: pkix.Name{CommonName: "k3s-server-ca@1"}}, "", K3dHost},
		"K3s by its version":      {nil, "v1.35.1+k3s1", K3dHost},
		"Minikube by its name":    {&x509.Certificate{Subject: pkix.Name{CommonName: "minikube"}}, "", MinikubeHost},
		"Minikube by its CA":      {&x509.Certificate{Issuer: pkix.Name{CommonName: "minikubeCA"}}, "", MinikubeHost},
		"Docker Desktop":          {&x509.Certificate{DNSNames: []string{"kubernetes", "kubernetes.docker.internal"}}, "", DockerDesktopHost},
		"another cluster":         {&x509.Certificate{Subject: pkix.Name{CommonName: "kube-apiserver"}}, "v1.37.0", ""},
		"no certificate":          {nil, "v1.37.0", ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := clusterHost(test.certificate, test.version); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// cluster returns the endpoint of an API server that serves only its version.
func cluster(t *testing.T, version string) settings.AdmissionEndpoint {
	t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/version" {
			_, _ = io.WriteString(w, version)
		}
	}))
	t.Cleanup(server.Close)
	return settings.AdmissionEndpoint{HTTP: server.Client(), URL: server.URL + "/"}
}

func TestAutoServesForTheDetectedCluster(t *testing.T) {
	g := gomega.NewWithT(t)
	config := start(t, Auto(Server{Addr: "localhost", Port: freePort(t)}), cluster(t, `{"gitVersion": "v1.37.0+k3s1"}`)).address(t)
	g.Expect(*config.URL).To(gomega.HavePrefix("https://" + K3dHost + ":"))
	config = start(t, Auto(Server{Addr: "localhost", Port: freePort(t)}), cluster(t, `{"gitVersion": "v1.37.0"}`)).address(t)
	g.Expect(*config.URL).To(gomega.HavePrefix("https://localhost:"))
	config = start(t, AutoTunnel(Server{Addr: "localhost", Port: freePort(t)}, Ngrok{}), cluster(t, `{"gitVersion": "v1.37.0+k3s1"}`)).address(t)
	g.Expect(*config.URL).To(gomega.HavePrefix("https://" + K3dHost + ":"))
}

func TestUndetectableClusterIsAnError(t *testing.T) {
	g := gomega.NewWithT(t)
	for _, server := range []settings.AdmissionServer{Auto(Server{}), AutoTunnel(Server{}, Ngrok{})} {
		g.Expect(server.Serve(t.Context(), cluster(t, "nothing"))).To(gomega.MatchError(gomega.ContainSubstring("the kind of the cluster cannot be detected")))
	}
}

func TestHostAndAddrOverrideThoseOfClusters(t *testing.T) {
	g := gomega.NewWithT(t)
	g.Expect(Minikube(Server{})).To(gomega.Equal(Server{Host: MinikubeHost, Addr: "0.0.0.0"}))
	g.Expect(DockerDesktop(Server{})).To(gomega.Equal(Server{Host: DockerDesktopHost, Addr: "0.0.0.0"}))
	g.Expect(K3d(Server{Host: "my.host", Addr: "10.0.0.1"})).To(gomega.Equal(Server{Host: "my.host", Addr: "10.0.0.1"}))
}
