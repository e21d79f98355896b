package login

import (
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"

	"github.com/onsi/gomega"
	"k8s.io/client-go/rest"
)

func TestRetarget(t *testing.T) {
	tests := map[string]struct{ from, to, request, want string }{
		"the same":                       {"https://a", "https://a", "https://a/api/v1?watch=1", "https://a/api/v1?watch=1"},
		"another host":                   {"https://a", "https://b:6443", "https://a/api", "https://b:6443/api"},
		"another scheme":                 {"http://a", "https://a", "http://a/api", "https://a/api"},
		"to a prefix":                    {"https://a", "https://b/k8s/c1", "https://a/api", "https://b/k8s/c1/api"},
		"from a prefix":                  {"https://a/k8s", "https://b", "https://a/k8s/api", "https://b/api"},
		"from one to another":            {"https://a/k8s", "https://b/x", "https://a/k8s/api", "https://b/x/api"},
		"the root":                       {"https://a/k8s", "https://b/x", "https://a/k8s", "https://b/x"},
		"an escaped path":                {"https://a/k8s", "https://b/x", "https://a/k8s/n%2Fm", "https://b/x/n%2Fm"},
		"an escaped prefix":              {"https://a/k%2F8", "https://b/x%2Fy", "https://a/k%2F8/n", "https://b/x%2Fy/n"},
		"a user":                         {"https://a", "https://me:you@b", "https://a/api", "https://me:you@b/api"},
		"redirected by the one in use":   {"https://a/k8s", "https://b/x", "https://b/x/api", "https://b/x/api"},
		"redirected outside of a prefix": {"https://a/k8s", "https://b/x", "https://a/login", "https://b/x/login"},
		"redirected to another host":     {"https://a", "https://b", "https://c/api", ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := gomega.NewWithT(t)
			from, err := serverURLOf(&rest.Config{Host: test.from})
			g.Expect(err).NotTo(gomega.HaveOccurred())
			to, err := serverURLOf(&rest.Config{Host: test.to})
			g.Expect(err).NotTo(gomega.HaveOccurred())
			request, err := http.NewRequest(http.MethodGet, test.request, http.NoBody)
			g.Expect(err).NotTo(gomega.HaveOccurred())
			if err := retarget(request, from, to); test.want == "" {
				g.Expect(err).To(gomega.HaveOccurred())
				return
			}
			g.Expect(request.URL.String()).To(gomega.Equal(test.want))
			g.Expect(request.Host).To(gomega.BeEmpty())
		})
	}
}

func TestServerURL(t *testing.T) {
	g := gomega.NewWithT(t)
	base, err := serverURLOf(&rest.Config{Host: "10.0.0.1:6443", TLSClientConfig: rest.TLSClientConfig{Insecure: true}})
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(base).To(gomega.Equal(&url.URL{Scheme: "https", Host: "10.0.0.1:6443"}))
	for _, host := range []string{"https://user:pass@host:x", "a/b", "https://"} {
		_, err = serverURLOf(&rest.Config{Host: host})
		g.Expect(err).To(gomega.Equal(errInvalidHost), host)
	}
}

// tlsServer starts an API server below a prefix, with a self-signed certificate.
func tlsServer(t *testing.T, prefix string, revoked *atomic.Bool) (connection *Connection, served *atomic.Int32) {
	served = &atomic.Int32{}
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		content, _ := io.ReadAll(request.Body)
		switch {
		case revoked.Load():
			w.WriteHeader(http.StatusUnauthorized)
		case request.URL.Path == prefix+"/elsewhere":
			http.Redirect(w, request, "https://other.test/", http.StatusFound)
		case request.URL.Path == prefix+"/object" && string(content) == "content":
			served.Add(1)
		default:
			w.WriteHeader(http.StatusTeapot)
		}
	}))
	t.Cleanup(s.Close)
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	return &Connection{Config: &rest.Config{
		Host: s.URL + prefix, BearerToken: "token", TLSClientConfig: rest.TLSClientConfig{CAData: authority},
	}}, served
}

func TestTheNextLoginCanLeadToAnotherServer(t *testing.T) {
	g, revoked := gomega.NewWithT(t), &atomic.Bool{}
	old, oldServed := tlsServer(t, "", revoked)
	next, nextServed := tlsServer(t, "/k8s/clusters/c1", &atomic.Bool{})
	old.Config.QPS, old.Config.UserAgent = 42, "me"
	o := start(t, one(old), one(next))
	g.Expect(o.Config().QPS).To(gomega.BeEquivalentTo(42))
	g.Expect(o.Config().UserAgent).To(gomega.Equal("me"))

	put := func() (int, error) {
		return o.do(t.Context(), http.MethodPut, "/object", iotest.OneByteReader(strings.NewReader("content")))
	}
	g.Expect(put()).To(gomega.Equal(http.StatusOK))
	revoked.Store(true)
	g.Expect(put()).To(gomega.Equal(http.StatusOK))
	g.Expect(put()).To(gomega.Equal(http.StatusOK))
	g.Expect(oldServed.Load()).To(gomega.BeEquivalentTo(1))
	g.Expect(nextServed.Load()).To(gomega.BeEquivalentTo(2))

	_, err := o.get(t.Context(), "/elsewhere")
	g.Expect(err).To(gomega.MatchError(gomega.ContainSubstring("must not get the credentials")))
}
