package login

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/onsi/gomega"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd/api"
)

const secret = "s3cr3t"

// leaky returns a connection with the secret in every field that can hold credentials.
func leaky() *Connection {
	return &Connection{Config: &rest.Config{
		Host:     "https://" + secret + ":" + secret + "@cluster.test/prefix",
		Username: secret, Password: secret, BearerToken: secret,
		TLSClientConfig: rest.TLSClientConfig{CertData: []byte(secret), KeyData: []byte(secret)},
		ExecProvider:    &api.ExecConfig{Command: "none", APIVersion: "client.authentication.k8s.io/v1", InteractiveMode: "Never", Env: []api.ExecEnvVar{{Name: "PASSWORD", Value: secret}}},
	}}
}

func TestNoCredentialIsShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, s := gomega.NewWithT(t), newServer(secret)
		good := s.grant(secret)
		good.Config.Host, good.Priority = leaky().Config.Host, 1
		broken := map[string]*Connection{
			"a": good, "b": {Config: &rest.Config{Host: "https://" + secret + ":" + secret + "@cluster.test:x/"}},
			"c": {Config: &rest.Config{Host: "cluster.test", Username: secret, Password: secret, BearerToken: secret}},
			"d": {Config: &rest.Config{Host: "cluster.test", TLSClientConfig: rest.TLSClientConfig{CertData: []byte(secret), KeyData: []byte(secret)}}},
			"e": {Config: &rest.Config{Host: "cluster.test", BearerToken: secret + "\n"}},
		}
		o := start(t, offer{connections: broken})
		o.served(g, "/")
		s.accept()
		_, err := o.get(t.Context(), "/")
		g.Expect(err).To(gomega.HaveOccurred())
		_, other := o.get(t.Context(), "/")
		g.Expect(other).To(gomega.HaveOccurred())
		shown := []any{o.Config(), o.Config().Host, o.Credentials, err, other, o.Check(), fmt.Sprintf("%#v", err)}
		for _, c := range append(slices.Collect(maps.Values(broken)), leaky()) {
			o.logger().Info("a connection", "pointer", c, "value", *c, "list", []*Connection{c}, "in", struct{ Connection Connection }{*c})
			text, err := json.Marshal(c)
			g.Expect(err).NotTo(gomega.HaveOccurred())
			shown = append(shown, c, *c, []Connection{*c}, map[string]Connection{"key": *c}, string(text))
		}
		for _, value := range shown {
			for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%d", "%x"} {
				g.Expect(fmt.Sprintf(verb, value)).NotTo(gomega.ContainSubstring(secret))
			}
		}
		g.Expect(o.logLines()).NotTo(gomega.BeEmpty())
		g.Expect(strings.Join(o.logLines(), "\n")).NotTo(gomega.ContainSubstring(secret))
	})
}

func TestAResponseDoesNotExposeTheCredentials(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, s := gomega.NewWithT(t), newServer(secret)
		o := start(t, one(s.grant(secret)))
		answer, err := o.client.Get(o.Config().Host + "/")
		g.Expect(err).NotTo(gomega.HaveOccurred())
		defer func() { _ = answer.Body.Close() }()
		g.Expect(answer.Request.Header).NotTo(gomega.HaveKey("Authorization"))
	})
}

func TestAConnectionPrintsItsAddress(t *testing.T) {
	g := gomega.NewWithT(t)
	c := Connection{Config: leaky().Config, Expires: time.Unix(0, 0), Priority: 5}
	g.Expect(c.String()).To(gomega.Equal("connection to https://cluster.test/prefix, priority 5, expires 1970-01-01T00:00:00Z"))
	g.Expect(fmt.Sprint(Connection{}, &Connection{})).To(gomega.Equal("connection to nowhere, priority 0 connection to nowhere, priority 0"))
}

func TestAConnectionIsReplacedShortlyBeforeItExpires(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	tests := map[string]struct{ life, used time.Duration }{
		"a long life":  {time.Hour, time.Hour - 10*time.Second},
		"a minute":     {time.Minute, 54 * time.Second},
		"a short life": {time.Second, 900 * time.Millisecond},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			until, err := usableUntil(now.Add(test.life), now)
			if err != nil || until.Sub(now) != test.used {
				t.Errorf("got %s, %v", until.Sub(now), err)
			}
		})
	}
	if _, err := usableUntil(now, now); err == nil {
		t.Error("an expired connection is usable")
	}
}

func TestFingerprintsIdentifyCredentials(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	write := func(content string) {
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Error(err)
		}
	}
	write("first")
	full := func() *rest.Config {
		return &rest.Config{
			Host: "host", Username: "user", BearerTokenFile: file, Impersonate: rest.ImpersonationConfig{UserName: "other"},
			ExecProvider: &api.ExecConfig{Command: "run", Env: []api.ExecEnvVar{{Name: "a", Value: "b"}}},
		}
	}
	tests := map[string]struct {
		change func(*rest.Config)
		same   bool
	}{
		"nothing else":                        {func(*rest.Config) {}, true},
		"another rate":                        {func(c *rest.Config) { c.QPS = 5 }, true},
		"another host":                        {func(c *rest.Config) { c.Host = "other" }, false},
		"another user":                        {func(c *rest.Config) { c.Username = "other" }, false},
		"another password":                    {func(c *rest.Config) { c.Password = "other" }, false},
		"another command":                     {func(c *rest.Config) { c.ExecProvider.Env[0].Value = "c" }, false},
		"another impersonation":               {func(c *rest.Config) { c.Impersonate.Groups = []string{"group"} }, false},
		"another certificate":                 {func(c *rest.Config) { c.CertData = []byte("cert") }, false},
		"another content of the file":         {func(*rest.Config) { write("second") }, false},
		"a function":                          {func(c *rest.Config) { c.Wrap(func(next http.RoundTripper) http.RoundTripper { return next }) }, false},
		"another transport":                   {func(c *rest.Config) { c.Transport = newServer() }, false},
		"a transport that cannot be compared": {func(c *rest.Config) { c.Transport = roundTripper(nil) }, false},
	}
	seed := maphash.MakeSeed()
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := gomega.NewWithT(t)
			write("first")
			before, err := fingerprint(seed, full())
			g.Expect(err).NotTo(gomega.HaveOccurred())
			changed := full()
			test.change(changed)
			after, err := fingerprint(seed, changed)
			g.Expect(err).NotTo(gomega.HaveOccurred())
			g.Expect(before == after).To(gomega.Equal(test.same))
		})
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(sent *http.Request) (*http.Response, error) {
	if f == nil {
		return nil, errors.New("there is no transport")
	}
	return f(sent)
}
