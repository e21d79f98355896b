//go:build unix

package main

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-go/kopf/hack/envtest/assets"
	"github.com/kopf-go/kopf/internal/binaries"
)

// patience is enough to build an operator on a busy machine with an empty cache.
const patience = 5 * time.Minute

const stub = "./testdata/stub"

// TestMain gives the libraries a logger, as main does.
func TestMain(m *testing.M) {
	ctrllog.SetLogger(logr.Discard())
	os.Exit(m.Run())
}

// isolate keeps a test away from the clusters and files of the user, except for
// kube-apiserver, etcd, and the build cache. It returns the pattern of the kubeconfig
// files.
func isolate(t *testing.T) string {
	t.Helper()
	programs, err := assets.Find()
	if err != nil {
		t.Fatal(err)
	}
	compiled, err := exec.Command("go", "env", "GOCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	t.Setenv(binaries.Variable, programs)
	t.Setenv("GOCACHE", strings.TrimSpace(string(compiled)))
	t.Setenv("XDG_CACHE_HOME", home)
	t.Setenv("KUBECONFIG", kubeconfigFor(t, serve(t, 500))) // a cluster that must not be used
	return filepath.Join(home, "kopf-go", "dev", "*")
}

func TestOnceEndsWhenTheSampleIsHandled(t *testing.T) {
	g := gomega.NewWithT(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	files := isolate(t)
	var terminal bytes.Buffer
	err := run(ctx, options{cluster: temporary, example: stub, once: true, timeout: patience}, newConsole(&terminal))
	g.Expect(err).NotTo(gomega.HaveOccurred(), terminal.String())
	for _, line := range []string{
		"[dev] Starting etcd and kube-apiserver",
		"kubectl get kopfexample stub -o yaml",
		"kopfexample/stub: exists",
		"record createFn (create): succeeded",
		`status.createFn = {"message":"hello"}`,
		"kopfexample/stub: IS HANDLED",
		"stopped in order",
	} {
		g.Expect(terminal.String()).To(gomega.ContainSubstring(line))
	}
	nothingIsLeft(g, terminal.String())
	g.Expect(filepath.Glob(files)).To(gomega.BeEmpty())
}

// TestTheSampleMeetsTheWebhooks runs an example with admission handlers, which replace a string in the sample.
func TestTheSampleMeetsTheWebhooks(t *testing.T) {
	g := gomega.NewWithT(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	kubeconfigs := isolate(t)
	terminal := &terminal{}
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, options{cluster: temporary, example: "17-admission"}, newConsole(terminal)) }()
	g.Eventually(terminal.String, patience).Should(gomega.ContainSubstring("kopfexample/kopf-example-1: exists"))

	found, err := filepath.Glob(kubeconfigs)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(found).To(gomega.HaveLen(1))
	config, err := clientcmd.BuildConfigFromFlags("", found[0])
	g.Expect(err).NotTo(gomega.HaveOccurred())
	reader, err := client.New(config, client.Options{})
	g.Expect(err).NotTo(gomega.HaveOccurred())
	sample := &unstructured.Unstructured{}
	sample.SetAPIVersion("kopf.dev/v1")
	sample.SetKind("KopfExample")
	g.Expect(reader.Get(ctx, client.ObjectKey{Namespace: "default", Name: "kopf-example-1"}, sample)).To(gomega.Succeed())
	g.Expect(sample.Object).To(gomega.HaveKeyWithValue("spec", gomega.HaveKeyWithValue("numbers", []any{int64(1), 2.5, int64(3)})))
	cancel()
	g.Expect(<-ended).To(gomega.Succeed())
}

func TestASignalStopsEverything(t *testing.T) {
	g := gomega.NewWithT(t)
	binary := filepath.Join(t.TempDir(), "dev")
	const suddenDeath = "SIGKILL"
	g.Expect(exec.Command("go", "build", "-o", binary, ".").Run()).To(gomega.Succeed())
	for name, send := range map[string]func(pid int) error{
		"SIGTERM":            func(pid int) error { return syscall.Kill(pid, syscall.SIGTERM) },
		"Ctrl-C for a group": func(pid int) error { return syscall.Kill(-pid, syscall.SIGINT) },
		suddenDeath:          func(pid int) error { return syscall.Kill(pid, syscall.SIGKILL) },
	} {
		t.Run(name, func(t *testing.T) {
			g := gomega.NewWithT(t)
			files, terminal := isolate(t), &terminal{}
			command := exec.Command(binary, stub)
			command.Stdout, command.Stderr = terminal, terminal
			command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
			g.Expect(command.Start()).To(gomega.Succeed())
			g.Eventually(terminal.String, patience).Should(gomega.SatisfyAll(
				gomega.ContainSubstring("IS HANDLED"),
				gomega.ContainSubstring("kopfexample/stub: event Normal Logging: Handler createFn succeeded.")))

			g.Expect(send(command.Process.Pid)).To(gomega.Succeed())
			err := command.Wait()
			nothingIsLeft(g, terminal.String())
			if name == suddenDeath {
				return
			}
			g.Expect(terminal.String()).To(gomega.ContainSubstring("stopped in order"))
			g.Expect(err).NotTo(gomega.HaveOccurred())
			g.Expect(filepath.Glob(files)).To(gomega.BeEmpty())
		})
	}
}

// nothingIsLeft checks that the operator and the API server of a run have stopped. It
// finds them in the output of the run.
func nothingIsLeft(g *gomega.WithT, output string) {
	g.Eventually(func(g gomega.Gomega) {
		pid, err := strconv.Atoi(find(output, `pid (\d+)`))
		g.Expect(err).NotTo(gomega.HaveOccurred())
		g.Expect(errors.Is(syscall.Kill(pid, 0), syscall.ESRCH)).To(gomega.BeTrue(), "the operator still runs")

		server, err := url.Parse(find(output, `The control plane is at (\S+)\.`))
		g.Expect(err).NotTo(gomega.HaveOccurred())
		_, err = net.Dial("tcp", server.Host)
		g.Expect(err).To(gomega.HaveOccurred(), "the API server still runs")
	}, patience).Should(gomega.Succeed())
}

func find(output, pattern string) string {
	match := regexp.MustCompile(pattern).FindStringSubmatch(output)
	if match == nil {
		return ""
	}
	return match[1]
}

// terminal is a buffer that is safe for concurrent use.
type terminal struct {
	mu  sync.Mutex
	out bytes.Buffer
}

func (t *terminal) Write(piece []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.out.Write(piece)
}

func (t *terminal) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.out.String()
}
