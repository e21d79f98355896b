package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	webv1 "github.com/kopf-go/kopf/examples/kubebuilder/api/v1"
)

// asManager is the environment variable that makes the test binary the manager.
const asManager = "TEST_AS_MANAGER"

func TestMain(m *testing.M) {
	if os.Getenv(asManager) != "" {
		main()
	}
	ctrl.SetLogger(zap.New(zap.UseDevMode(true)))
	os.Exit(m.Run())
}

// process is a running manager.
type process struct {
	*exec.Cmd
	done chan error

	mu  sync.Mutex
	log bytes.Buffer
}

// Write keeps what the manager logs.
func (p *process) Write(text []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.Write(text)
}

func (p *process) says() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.String()
}

// hasHandled reports whether the manager has handled any of the sites.
func (p *process) hasHandled(sites []*webv1.Site) bool {
	for line := range strings.Lines(p.says()) {
		for _, site := range sites {
			if strings.Contains(line, "The creation is processed") && strings.Contains(line, fmt.Sprintf(`"name":%q`, site.Name)) {
				return true
			}
		}
	}
	return false
}

// Three managers share the sites. One stops, and another one takes its place.
func TestManagersShareSites(t *testing.T) {
	g := NewWithT(t)
	cluster := &envtest.Environment{CRDDirectoryPaths: []string{filepath.Join("..", "config", "crd", "bases")}, ErrorIfCRDPathMissing: true}
	config, err := cluster.Start()
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() {
		if err := cluster.Stop(); err != nil {
			t.Error(err)
		}
	})
	api, err := client.New(config, client.Options{Scheme: newScheme()})
	g.Expect(err).NotTo(HaveOccurred())
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	g.Expect(os.WriteFile(kubeconfig, cluster.KubeConfig, 0o600)).To(Succeed())
	start := func() *process {
		p := &process{Cmd: exec.Command(os.Args[0], "--shards=16", "--health-probe-bind-address=0", "--zap-devel"), done: make(chan error, 1)}
		p.Env = append(os.Environ(), asManager+"=1", "KUBECONFIG="+kubeconfig, "POD_NAMESPACE=default", "ENABLE_WEBHOOKS=false")
		p.Stdout = p
		p.Stderr = p
		g.Expect(p.Start()).To(Succeed())
		go func() { p.done <- p.Wait() }()
		t.Cleanup(func() {
			_ = p.Process.Kill()
			if t.Failed() {
				t.Log(p.says())
			}
		})
		return p
	}
	create := func(name string) (sites []*webv1.Site) {
		for i := range 60 {
			site := &webv1.Site{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("%s-%d", name, i)}, Spec: webv1.SiteSpec{Message: "Hello", Image: "web:1"}}
			g.Expect(api.Create(t.Context(), site)).To(Succeed())
			sites = append(sites, site)
		}
		return sites
	}
	expectHandled := func(sites []*webv1.Site, by ...*process) {
		t.Helper()
		for _, site := range sites {
			g.Eventually(func() (string, error) {
				err := api.Get(t.Context(), client.ObjectKeyFromObject(site), site)
				return site.Status.URL, err
			}, time.Minute).ShouldNot(BeEmpty())
			g.Expect(api.Get(t.Context(), client.ObjectKeyFromObject(site), &corev1.ConfigMap{})).To(Succeed())
		}
		for _, p := range by {
			g.Eventually(func() bool { return p.hasHandled(sites) }, time.Minute).Should(BeTrue())
		}
	}
	expectShards := func(p *process) {
		t.Helper()
		g.Eventually(p.says, time.Minute).Should(ContainSubstring("This replica handles the shards"))
	}

	managers := []*process{start(), start(), start()}
	for _, p := range managers {
		expectShards(p)
	}
	expectHandled(create("first"), managers...)

	g.Expect(managers[0].Process.Signal(syscall.SIGTERM)).To(Succeed())
	g.Eventually(managers[0].done, time.Minute).Should(Receive(Succeed()))
	expectHandled(create("second"), managers[1:]...)

	next := start()
	expectShards(next)
	expectHandled(create("third"), managers[1], managers[2], next)
}
