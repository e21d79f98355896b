package sharing

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/storage"
	"github.com/kopf-go/kopf/test/testenv"
)

// The environment of a replica.
const (
	replicaVariable   = "KOPF_TEST_REPLICA"   // its name
	namespaceVariable = "KOPF_TEST_NAMESPACE" // what it serves
	journalVariable   = "KOPF_TEST_JOURNAL"   // the file where its handlers write
)

const (
	operatorName = "sharing.example.com"
	number       = 16 // of shards
	// leaseDuration is as short as the server and a busy machine allow.
	leaseDuration = 5 * time.Second
	renewDeadline = 3 * time.Second
	retryPeriod   = 300 * time.Millisecond
)

var examples = kopf.Resource("kopf.dev", "v1", "kopfexamples")

// runReplica runs a replica as a process.
func runReplica() int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	name := os.Getenv(replicaVariable)
	journal, err := os.OpenFile(os.Getenv(journalVariable), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	registry := kopf.NewRegistry()
	declare(registry, func(what string, uid types.UID, detail any) {
		_, _ = fmt.Fprintf(journal, "%d\t%s\t%s\t%s\t%v\n", time.Now().UnixNano(), name, what, uid, detail)
	})
	config := ctrl.GetConfigOrDie()
	config.UserAgent = name // the Lease of the replica has it as the manager of its fields
	options := kopf.Options{Registry: registry, Config: config, Logger: testenv.Logger().WithName(name)}
	options.Settings.Name = operatorName
	options.Settings.Scope.Namespaces = []string{os.Getenv(namespaceVariable)}
	options.Settings.Peering.Standalone = true
	options.Settings.Posting.Disabled = true
	options.Settings.Networking.QPS = -1
	options.Settings.Execution.GracePeriod = 10 * time.Second // a busy machine needs time to write what is left before a move
	options.Settings.Persistence.DiffBase = storage.AnnotationsDiffBase{IgnoredFields: []object.Path{{"spec", journalField}}}
	options.Settings.Replicas.Shards = number
	options.Settings.Replicas.LeaseNamespace = os.Getenv(namespaceVariable)
	options.Settings.Replicas.LeaseDuration = leaseDuration
	options.Settings.Replicas.RenewDeadline = renewDeadline
	options.Settings.Replicas.RetryPeriod = retryPeriod
	if err := kopf.Run(ctx, options); err != nil {
		fmt.Fprintln(os.Stderr, name, err)
		return 1
	}
	return 0
}

// journalField is the list in the spec to which each success adds an entry. It is no part of the essence, and is
// written together with the record of the success.
const journalField = "journal"

// enter makes a handler add an entry to the list of its object.
func enter(c *kopf.Change, entry string) {
	c.Patch().Apply(func(obj *unstructured.Unstructured) error {
		entries, _, err := unstructured.NestedStringSlice(obj.Object, "spec", journalField)
		if err != nil {
			return err
		}
		return unstructured.SetNestedStringSlice(obj.Object, append(entries, entry), "spec", journalField)
	})
}

func sizeOf(body *object.Body) int64 {
	size, _, _ := unstructured.NestedInt64(body.Raw(), "spec", "size")
	return size
}

// sized describes a change.
func sized(what string, c *kopf.Change) string { return fmt.Sprint(what, " ", sizeOf(c.Body())) }

// What the handlers write to the journal of the processes.
const (
	begins   = "begins"
	ends     = "ends"
	succeeds = "succeeds"
	starts   = "starts" // a daemon
	leaves   = "leaves"
	ticks    = "ticks"
	applies  = "applies" // children
)

// declare declares handlers that write when they begin and end. Some calls take a while, and some of the first attempts fail.
func declare(r *kopf.Registry, write func(what string, uid types.UID, detail any)) {
	work := func(ctx context.Context, c *kopf.Change, what string) error {
		write(begins, c.UID(), what)
		defer write(ends, c.UID(), what)
		hash := fnv.New32a()
		_, _ = fmt.Fprint(hash, c.UID(), what)
		dice := hash.Sum32()
		select {
		case <-time.After(time.Duration(dice%10) * 40 * time.Millisecond):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if dice%3 == 0 && c.Retry() == 0 {
			return kopf.Temporary(errors.New("not yet"), 500*time.Millisecond)
		}
		enter(c, what)
		write(succeeds, c.UID(), what)
		return nil
	}
	r.OnCreate(examples, func(ctx context.Context, c *kopf.Change) error { return work(ctx, c, sized("creation", c)) }, kopf.ID("create"))
	r.OnUpdate(examples, func(ctx context.Context, c *kopf.Change) error {
		return work(ctx, c, sized("update", c))
	}, kopf.ID("update"), kopf.Field("spec.size"))
	r.OnDelete(examples, func(ctx context.Context, c *kopf.Change) error { return work(ctx, c, "deletion") }, kopf.ID("delete"))
	r.Daemon(examples, func(_ context.Context, t *kopf.Task) error {
		write(starts, t.UID(), "")
		<-t.Stopped()
		write(leaves, t.UID(), t.StopReason())
		return nil
	}, kopf.ID("daemon"))
	r.Timer(examples, func(_ context.Context, t *kopf.Tick) error {
		write(ticks, t.UID(), "")
		return nil
	}, kopf.ID("timer"), kopf.Interval(5*time.Second))
	r.Ensure(examples, func(_ context.Context, c *kopf.Change) ([]client.Object, error) {
		write(applies, c.UID(), "")
		var children []client.Object
		for _, suffix := range []string{"-a", "-b"} {
			children = append(children, &corev1.ConfigMap{
				TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
				ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace(), Name: c.Name() + suffix},
				Data:       map[string]string{"size": fmt.Sprint(sizeOf(c.Body()))},
			})
		}
		return children, nil
	}, kopf.ID("children"))
}

// line is what a replica has done at a time.
type line struct {
	at       time.Time
	by, what string
	uid      types.UID
	detail   string
}

// journal is the file where all replicas write.
type journal struct {
	path string

	mu    sync.Mutex
	read  int
	lines []line
}

// all returns the lines so far.
func (j *journal) all(t *testing.T) []line {
	t.Helper()
	j.mu.Lock()
	defer j.mu.Unlock()
	text, err := os.ReadFile(j.path)
	if err != nil {
		return nil
	}
	for one := range strings.Lines(string(text[j.read:])) {
		if !strings.HasSuffix(one, "\n") { // it is being written
			break
		}
		j.read += len(one)
		fields := strings.Split(strings.TrimSuffix(one, "\n"), "\t")
		if len(fields) != 5 {
			t.Fatalf("the journal has the line %q", one)
		}
		var at int64
		if _, err := fmt.Sscan(fields[0], &at); err != nil {
			t.Fatal(err)
		}
		j.lines = append(j.lines, line{time.Unix(0, at), fields[1], fields[2], types.UID(fields[3]), fields[4]})
	}
	return j.lines
}

// process is a running replica.
type process struct {
	*exec.Cmd
	name string
	done chan error
}

// spawn starts a replica. The end of the test kills it if it is still running.
func spawn(t *testing.T, cluster *testenv.Cluster, name, namespace, journal string) *process {
	t.Helper()
	g := gomega.NewWithT(t)
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	g.Expect(os.WriteFile(kubeconfig, cluster.KubeConfig(), 0o600)).To(gomega.Succeed())
	p := &process{exec.Command(os.Args[0]), name, make(chan error, 1)}
	p.Env = append(os.Environ(), replicaVariable+"="+name, namespaceVariable+"="+namespace, journalVariable+"="+journal, "KUBECONFIG="+kubeconfig)
	p.Stderr = os.Stderr
	g.Expect(p.Start()).To(gomega.Succeed())
	go func() { p.done <- p.Wait() }()
	t.Cleanup(func() { _ = p.Process.Kill() })
	return p
}

// signal sends a signal to the process.
func (p *process) signal(t *testing.T, signal syscall.Signal) {
	t.Helper()
	if err := p.Process.Signal(signal); err != nil {
		t.Fatal(err)
	}
}
