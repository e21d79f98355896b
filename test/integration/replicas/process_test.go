package replicas

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/onsi/gomega"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/test/testenv"
)

// The environment of a replica.
const (
	replicaVariable   = "KOPF_TEST_REPLICA"   // its name
	namespaceVariable = "KOPF_TEST_NAMESPACE" // what it serves
	journalVariable   = "KOPF_TEST_JOURNAL"   // the file where its handlers write
)

// runReplica runs an operator as a process. Every handler writes when it begins and when
// it ends.
func runReplica() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	registry, write := kopf.NewRegistry(), journalOf(os.Getenv(journalVariable), os.Getenv(replicaVariable))
	declare(registry, write)
	options := kopf.Options{Registry: registry, Settings: elected(os.Getenv(namespaceVariable)), Config: ctrl.GetConfigOrDie(), Logger: testenv.Logger()}
	if err := kopf.Run(ctx, options); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// declare declares one handler of each kind that only a leader calls.
func declare(r *kopf.Registry, write func(string)) {
	r.OnCreate(examples, func(ctx context.Context, c *kopf.Change) error {
		write("begin create " + c.Name())
		select {
		case <-ctx.Done():
		case <-time.After(100 * time.Millisecond):
		}
		write("end create " + c.Name())
		return ctx.Err()
	}, kopf.ID("create"))
	r.Timer(examples, func(_ context.Context, t *kopf.Tick) error {
		write("begin timer " + t.Name())
		write("end timer " + t.Name())
		return nil
	}, kopf.ID("timer"), kopf.Interval(50*time.Millisecond))
	r.Daemon(examples, func(_ context.Context, t *kopf.Task) error {
		write("begin daemon " + t.Name())
		<-t.Stopped()
		write("end daemon " + t.Name())
		return nil
	}, kopf.ID("daemon"), kopf.CancellationTimeout(time.Second))
	scheduled := kopf.Labels(map[string]kopf.Matcher{"scheduled": kopf.Equal("yes")})
	r.Timer(examples, func(ctx context.Context, t *kopf.Tick) error {
		run := t.Scheduled().Format(time.RFC3339)
		write("begin run " + run)
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(300 * time.Millisecond):
		}
		write("end run " + run)
		return nil
	}, scheduled, kopf.ID("backup"), kopf.Schedule("* * * * *", kopf.CatchUp(100)))
	r.OnCleanup(func(context.Context, *kopf.Activity) error { write("cleanup"); return nil }, kopf.ID("cleanup"))
}

// journalOf writes whole lines to the end of a file that several processes share.
func journalOf(path, name string) func(line string) {
	return func(line string) {
		file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return
		}
		_, _ = fmt.Fprintf(file, "%s: %s\n", name, line)
		_ = file.Close()
	}
}

// journal contains the lines that all replicas of a test have written.
type journal struct {
	t    *testing.T
	path string
}

func newJournal(t *testing.T) *journal {
	t.Helper()
	return &journal{t, filepath.Join(t.TempDir(), "journal")}
}

func (j *journal) lines() []string {
	text, err := os.ReadFile(j.path)
	if err != nil {
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
}

// workers returns the replicas that have written, in order, without repetitions in a row.
func (j *journal) workers() []string {
	var workers []string
	for _, line := range j.lines() {
		name, what, _ := strings.Cut(line, ": ")
		if what != "cleanup" && (len(workers) == 0 || workers[len(workers)-1] != name) {
			workers = append(workers, name)
		}
	}
	return workers
}

// process is a running replica.
type process struct {
	*exec.Cmd
	done chan error
}

// spawn starts a replica. The end of the test kills it if it is still running.
func (j *journal) spawn(name, namespace string) *process {
	j.t.Helper()
	g := gomega.NewWithT(j.t)
	kubeconfig := filepath.Join(j.t.TempDir(), "kubeconfig")
	g.Expect(os.WriteFile(kubeconfig, cluster.KubeConfig(), 0o600)).To(gomega.Succeed())
	p := &process{exec.Command(os.Args[0]), make(chan error, 1)}
	p.Env = append(os.Environ(), replicaVariable+"="+name, namespaceVariable+"="+namespace, journalVariable+"="+j.path, "KUBECONFIG="+kubeconfig)
	p.Stderr = os.Stderr
	g.Expect(p.Start()).To(gomega.Succeed())
	go func() { p.done <- p.Wait() }()
	j.t.Cleanup(func() { _ = p.Process.Kill() })
	return p
}
