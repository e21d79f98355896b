package shards

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
	"k8s.io/client-go/kubernetes"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/kopf-go/kopf/pkg/shards"
	"github.com/kopf-go/kopf/pkg/shards/ring"
	"github.com/kopf-go/kopf/test/testenv"
)

// The environment of a replica.
const (
	replicaVariable   = "KOPF_TEST_REPLICA"   // its name
	namespaceVariable = "KOPF_TEST_NAMESPACE" // of the Leases
	journalVariable   = "KOPF_TEST_JOURNAL"   // the file where it writes what it does
)

const number = 8

// leaseDuration is as short as the server and a busy machine allow.
const leaseDuration = 5 * time.Second

// runReplica runs a replica as a process.
func runReplica() int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	client, err := kubernetes.NewForConfig(ctrl.GetConfigOrDie())
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	r, err := ring.New(ring.Config{
		Client: client.CoordinationV1(), Namespace: os.Getenv(namespaceVariable), Name: "example", Identity: os.Getenv(replicaVariable),
		Division: shards.Division{Number: number}, Logger: testenv.Logger(),
		LeaseDuration: leaseDuration, RenewDeadline: 3 * time.Second, RetryPeriod: 300 * time.Millisecond,
		Hold: func(ctx context.Context, shard int, lease ring.Validity) {
			write("begin", shard, time.Now())
			for ctx.Err() == nil {
				now := time.Now() // the process can be frozen between any two lines
				if lease.Valid() {
					write("work", shard, now)
				}
				select {
				case <-ctx.Done():
				case <-time.After(20 * time.Millisecond):
				}
			}
			write(fmt.Sprintf("end(%v)", context.Cause(ctx)), shard, time.Now())
		},
	})
	if err == nil {
		err = r.Run(ctx)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// write writes a line to the end of the file that all replicas share.
func write(what string, shard int, at time.Time) {
	file, err := os.OpenFile(os.Getenv(journalVariable), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return
	}
	_, _ = fmt.Fprintf(file, "%d\t%s\t%s\t%d\n", at.UnixNano(), os.Getenv(replicaVariable), what, shard)
	_ = file.Close()
}

// line is what a replica has done at a time.
type line struct {
	at       int64
	by, what string
	shard    int
}

// read returns the lines of all replicas.
func read(t *testing.T, path string) (lines []line) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	for text := range strings.Lines(string(text)) {
		fields := strings.Split(strings.TrimSuffix(text, "\n"), "\t")
		if len(fields) != 4 { // it is being written
			continue
		}
		l := line{by: fields[1], what: fields[2]}
		if _, err := fmt.Sscan(fields[0]+" "+fields[3], &l.at, &l.shard); err != nil {
			t.Error(err)
		}
		lines = append(lines, l)
	}
	return lines
}

// process is a running replica.
type process struct {
	*exec.Cmd
	done chan error
}

// spawn starts a replica. The end of the test kills it if it is still running.
func spawn(t *testing.T, name, namespace, journal string) *process {
	t.Helper()
	g := gomega.NewWithT(t)
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	g.Expect(os.WriteFile(kubeconfig, cluster.KubeConfig(), 0o600)).To(gomega.Succeed())
	p := &process{exec.Command(os.Args[0]), make(chan error, 1)}
	p.Env = append(os.Environ(), replicaVariable+"="+name, namespaceVariable+"="+namespace, journalVariable+"="+journal, "KUBECONFIG="+kubeconfig)
	p.Stderr = os.Stderr
	g.Expect(p.Start()).To(gomega.Succeed())
	go func() { p.done <- p.Wait() }()
	t.Cleanup(func() { _ = p.Process.Kill() })
	return p
}
