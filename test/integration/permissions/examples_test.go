package permissions

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/onsi/gomega"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/kopf-go/kopf/hack/envtest/assets"
	"github.com/kopf-go/kopf/pkg/cli/launch"
	"github.com/kopf-go/kopf/test/testenv"
)

// The examples run as programs under exactly the roles that they have printed, and no request is
// refused.
func TestExamplesRunUnderTheirRoles(t *testing.T) {
	t.Parallel()
	for _, example := range []string{"01-minimal", "02-children", "05-handlers", "16-indexing", "20-children"} {
		t.Run(example, func(t *testing.T) {
			t.Parallel()
			b, program := newBench(t), filepath.Join(t.TempDir(), example)
			b.build(program, "./examples/"+example)
			file := filepath.Join(t.TempDir(), "roles.yaml")
			b.run(program, cluster.Config(), "first", "--learn="+file)
			text, err := os.ReadFile(file)
			b.Expect(err).NotTo(gomega.HaveOccurred())
			b.grant(string(text))
			b.run(program, b.config(), "second")
			b.Expect(b.refused()).To(gomega.BeEmpty(), string(text))
		})
	}
}

// build builds a program of the repository.
func (b *bench) build(program, pkg string) {
	b.t.Helper()
	root, err := assets.Root()
	b.Expect(err).NotTo(gomega.HaveOccurred())
	command := exec.CommandContext(b.t.Context(), "go", launch.BuildArguments(pkg, program, "-ldflags=-s -w")...) //nolint:gosec // no input from outside
	command.Dir = root
	output, err := command.CombinedOutput()
	b.Expect(err).NotTo(gomega.HaveOccurred(), string(output))
}

// run runs an example in the namespace until it has handled an object from its creation to its
// deletion.
func (b *bench) run(program string, config *rest.Config, object string, flags ...string) {
	b.t.Helper()
	log := filepath.Join(b.t.TempDir(), object)
	output, err := os.Create(log)
	b.Expect(err).NotTo(gomega.HaveOccurred())
	defer func() { _ = output.Close() }()
	command := exec.CommandContext(b.t.Context(), program, append(flags, "--namespace="+b.namespace, "--standalone", "--kubeconfig="+b.proxied(config))...)
	command.Stdout, command.Stderr = output, output
	b.Expect(command.Start()).To(gomega.Succeed())
	ended := make(chan error, 1)
	go func() { ended <- command.Wait() }()
	text := func() string {
		content, _ := os.ReadFile(log)
		return string(content)
	}

	handled := testenv.NewObject("KopfExample", b.namespace, object, map[string]any{"duration": "1m", "field": "value", "items": []any{"item1"}, "replicas": int64(1), "size": "1G"})
	b.Expect(cluster.Client().Create(b.t.Context(), handled)).To(gomega.Succeed())
	b.Eventually(cluster.Current(handled)).WithTimeout(time.Minute).Should(
		testenv.HaveAnnotation("kopf.zalando.org/last-handled-configuration", gomega.Not(gomega.BeEmpty())), text)
	b.Expect(cluster.Client().Delete(b.t.Context(), handled)).To(gomega.Succeed())
	b.Eventually(cluster.Exists(handled)).WithTimeout(time.Minute).Should(gomega.BeFalse(), text)

	b.Expect(command.Process.Signal(syscall.SIGTERM)).To(gomega.Succeed())
	b.Eventually(ended).WithTimeout(time.Minute).Should(gomega.Receive(gomega.Not(gomega.HaveOccurred())), text)
}

// proxied returns a kubeconfig for a proxy that sends the requests with the configuration.
func (b *bench) proxied(config *rest.Config) string {
	b.t.Helper()
	through, err := rest.TransportFor(config)
	b.Expect(err).NotTo(gomega.HaveOccurred())
	target, err := url.Parse(config.Host)
	b.Expect(err).NotTo(gomega.HaveOccurred())
	server := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport: through, FlushInterval: -1,
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			http.Error(w, err.Error(), http.StatusBadGateway)
		},
	})
	b.t.Cleanup(server.CloseClientConnections)
	here, file := "here", api.NewConfig()
	file.Clusters[here] = &api.Cluster{Server: server.URL}
	file.AuthInfos[here] = &api.AuthInfo{}
	file.Contexts[here] = &api.Context{Cluster: here, AuthInfo: here}
	file.CurrentContext = here
	path := filepath.Join(b.t.TempDir(), "kubeconfig")
	b.Expect(clientcmd.WriteToFile(*file, path)).To(gomega.Succeed())
	return path
}
