package login

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/onsi/gomega"
)

// kubeconfig has two contexts; the first is the current one.
const kubeconfig = `
apiVersion: v1
kind: Config
current-context: one
clusters:
- {name: one, cluster: {server: "https://one.test"}}
- {name: two, cluster: {server: "https://two.test"}}
users:
- {name: user, user: {token: s3cr3t}}
contexts:
- {name: one, context: {cluster: one, user: user}}
- {name: two, context: {cluster: two, user: user}}
`

func write(t *testing.T, content string) string {
	path := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestKubeconfig(t *testing.T) {
	path := write(t, kubeconfig)
	tests := map[string]struct{ environment, path, context, want string }{
		"a file":                       {"", path, "", "https://one.test"},
		"another context":              {"", path, "two", "https://two.test"},
		"the environment":              {path, "", "", "https://one.test"},
		"a context of the environment": {path, "", "two", "https://two.test"},
		"no file in the environment":   {path + "-not", "", "", ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := gomega.NewWithT(t)
			t.Setenv("KUBECONFIG", test.environment)
			c, err := Kubeconfig(test.path, test.context)
			g.Expect(err).NotTo(gomega.HaveOccurred())
			if test.want == "" {
				g.Expect(c).To(gomega.BeNil())
				return
			}
			g.Expect(c.Config.Host).To(gomega.Equal(test.want))
			g.Expect(c.Config.BearerToken).To(gomega.Equal("s3cr3t"))
		})
	}
}

func TestInvalidKubeconfigs(t *testing.T) {
	tests := map[string]struct{ path, context string }{
		"no such file":    {"not-there", ""},
		"no such context": {write(t, kubeconfig), "three"},
		"no yaml":         {write(t, "token: s3cr3t: s3cr3t"), ""},
		"another type":    {write(t, "apiVersion: v1\nkind: Config\nusers: [{name: a, user: s3cr3t}]"), ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := gomega.NewWithT(t)
			_, err := Kubeconfig(test.path, test.context)
			g.Expect(err).To(gomega.MatchError(gomega.HavePrefix("the kubeconfig cannot be ")))
			g.Expect(fmt.Sprintf("%+v %#v", err, err)).NotTo(gomega.ContainSubstring(secret))
		})
	}
}

func TestOutsideOfAPodThereIsNoServiceAccount(t *testing.T) {
	g := gomega.NewWithT(t)
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	g.Expect(ServiceAccount()).To(gomega.BeNil())
}

func TestDefault(t *testing.T) {
	g := gomega.NewWithT(t)
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	t.Setenv("KUBECONFIG", write(t, kubeconfig))
	c, err := Default()
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(c.Config.Host).To(gomega.Equal("https://one.test"))
	t.Setenv("KUBECONFIG", write(t, "apiVersion: v1\nkind: Config"))
	_, err = Default()
	g.Expect(err).To(gomega.MatchError(gomega.HavePrefix("no cluster is configured: ")))
}
