package commands

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/onsi/gomega"
	"k8s.io/client-go/tools/clientcmd/api"
)

// Each problem results in one line and an exit code.
func testTroubles(t *testing.T, p programs) {
	closed := "https://127.0.0.1:1" // a port that was free a moment ago may be given to another server
	down := changed(t, func(c *api.Cluster, _ *api.AuthInfo) { c.Server = closed })
	untrusted := changed(t, func(c *api.Cluster, _ *api.AuthInfo) { c.CertificateAuthorityData = nil })
	unknown := changed(t, func(_ *api.Cluster, user *api.AuthInfo) { *user = api.AuthInfo{Token: "nobody-knows-me"} })
	tests := map[string]struct {
		arguments []string
		code      int
		want      string
	}{
		"no cluster":        {nil, 1, "no cluster to connect to: set KUBECONFIG or use --kubeconfig: "},
		"a cluster down":    {[]string{"--kubeconfig", down}, 1, "the cluster at " + closed + " cannot be reached because nothing listens at that address: is the cluster running, and is this the right kubeconfig\\? \\(connection refused\\)\n"},
		"no authority":      {[]string{"--kubeconfig", untrusted}, 1, "the certificate of the cluster at .* cannot be verified: does the kubeconfig have its certificate authority\\? \\(x509: .*\\)\n"},
		"wrong credentials": {[]string{"--kubeconfig", unknown}, 1, "the cluster at .* rejects the credentials: log in again, or correct the kubeconfig \\(Unauthorized\\)\n"},
		"a wrong flag":      {[]string{"--nonsense"}, 2, "unknown flag: --nonsense\nTry .* --help.\n"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := gomega.NewWithT(t)
			for program, arguments := range map[string][]string{p.example: nil, p.kopf: {"freeze", "--lifetime=60"}} {
				run := start(t, nil, program, append(arguments, test.arguments...)...)
				run.ends(test.code)
				g.Expect(run.log()).To(gomega.MatchRegexp("^" + filepath.Base(program) + ": " + test.want))
				g.Expect(strings.Count(run.log(), "\n")).To(gomega.Equal(test.code), run.log()) // usage errors have one more line
			}
		})
	}
}

func testNoPermission(t *testing.T, p programs) {
	g := gomega.NewWithT(t)
	path := changed(t, func(_ *api.Cluster, user *api.AuthInfo) { user.Impersonate = "nobody" })
	freeze := start(t, nil, p.kopf, "freeze", "--lifetime=60", "--kubeconfig", path)
	freeze.ends(1)
	g.Expect(freeze.log()).To(gomega.MatchRegexp(`^kopf: the peering object "default" cannot be changed: .* is forbidden: User "nobody" cannot .*; grant the permission to this user in a role\n$`))

	operator := start(t, nil, p.example, "--kubeconfig", path, "--standalone")
	operator.says(`is forbidden: User \"nobody\" cannot watch resource \"kopfexamples\"`)
	operator.session.Interrupt()
	operator.ends(0)
	t.Log(operator.log())
}

func testNoResource(t *testing.T, p programs) {
	operator := start(t, nil, p.kopf, "run", "./testdata/absent", "--kubeconfig", kubeconfig(t))
	operator.says(`\"nonsense\" selects nothing in this cluster: install its CustomResourceDefinition, or correct the name`)
	operator.says("The operator is running.")
	operator.session.Interrupt()
	operator.ends(0)
	gomega.NewWithT(t).Expect(strings.Count(operator.log(), "selects nothing")).To(gomega.Equal(1))
}

func testEnvironment(t *testing.T, p programs) {
	namespace := cluster.Namespace(t)
	operator := start(t, []string{"KOPF_KUBECONFIG=" + kubeconfig(t), "KOPF_NAMESPACE=" + namespace, "KOPF_LOG_FORMAT=plain"}, p.example)
	created(t, namespace, "one")
	operator.says("[" + namespace + "/one] And here we are!")
	wrong := start(t, []string{"KOPF_WORKERS=many"}, p.example)
	wrong.ends(2)
	gomega.NewWithT(t).Expect(wrong.log()).To(gomega.Equal("01-minimal: KOPF_WORKERS=\"many\" in the environment: expected an integer\nTry 01-minimal --help.\n"))
}

func testOthers(t *testing.T, p programs) {
	tests := map[string]struct {
		arguments string
		want      string
	}{
		"version":    {"version", `^kopf \S+ go1\.\S+ \w+/\w+\n$`},
		"completion": {"completion bash", `__start_kopf`},
		"help":       {"--help", `^kopf runs Kubernetes operators`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			run := start(t, nil, p.kopf, strings.Fields(test.arguments)...)
			run.ends(0)
			gomega.NewWithT(t).Expect(run.out()).To(gomega.MatchRegexp(test.want))
			gomega.NewWithT(t).Expect(run.log()).To(gomega.BeEmpty())
		})
	}
}
