package admission

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/settings"
	"github.com/kopf-go/kopf/pkg/webhook/servers"
	"github.com/kopf-go/kopf/test/testenv"
)

// rotation is how often the replicas replace their certificate.
const rotation = 2 * time.Second

// replica is one of several replicas of an operator with admission handlers.
type replica struct {
	namespace string
	url       string // of the service
	port      int
	shards    int // 0: one of the replicas leads
}

func (r replica) registry() *kopf.Registry {
	registry := kopf.NewRegistry()
	registry.OnMutate(examples, func(_ context.Context, a *kopf.Admission) error {
		a.Patch().Set("yes", "metadata", "labels", "mutated")
		return nil
	}, kopf.ID("mutate"))
	registry.OnValidate(examples, func(_ context.Context, a *kopf.Admission) error {
		if a.Name() == "bad" {
			return kopf.Reject("bad", 418)
		}
		return nil
	}, kopf.ID("validate"))
	return registry
}

func (r replica) adjust(o *kopf.Options) {
	o.Settings.Scope.Namespaces = []string{r.namespace}
	o.Settings.Replicas = settings.Replicas{
		LeaderElection: true, LeaseName: r.namespace, LeaseNamespace: r.namespace,
		// No replica waits for a lease to expire: each that stops gives its own back.
		LeaseDuration: time.Minute, RenewDeadline: 40 * time.Second, RetryPeriod: 100 * time.Millisecond,
	}
	if r.shards > 0 {
		o.Settings.Name = r.namespace
		o.Settings.Replicas.LeaderElection, o.Settings.Replicas.Shards = false, r.shards
	}
	o.Settings.Admission.Managed = r.namespace + ".kopf.dev"
	o.Settings.Admission.ShutdownDelay = 8 * learning
	server := servers.Server{Addr: "127.0.0.1", Port: r.port, Secret: r.namespace + "/webhooks", Rotation: rotation}
	o.Settings.Admission.Server = settings.AdmissionServerFunc(func(ctx context.Context, of settings.AdmissionEndpoint) error {
		publish := of.Publish
		of.Publish = func(ctx context.Context, config admissionregistrationv1.WebhookClientConfig) error {
			config.URL = new(r.url)
			return publish(ctx, config)
		}
		return server.Serve(ctx, of)
	})
}

// The environment of a replica that is a process.
const (
	namespaceVariable = "KOPF_TEST_REPLICA_NAMESPACE"
	urlVariable       = "KOPF_TEST_REPLICA_URL"
	portVariable      = "KOPF_TEST_REPLICA_PORT"
)

// ready is what a process says when it is ready.
const ready = "ready"

// runReplica runs a replica as a process, until it is killed.
func runReplica() int {
	port, err := strconv.Atoi(os.Getenv(portVariable))
	if err != nil {
		return fail(err)
	}
	r := replica{namespace: os.Getenv(namespaceVariable), url: os.Getenv(urlVariable), port: port}
	options := kopf.Options{Registry: r.registry(), Config: ctrl.GetConfigOrDie(), Logger: testenv.Logger()}
	r.adjust(&options)
	operator, err := kopf.NewOperator(options)
	if err != nil {
		return fail(err)
	}
	go func() {
		<-operator.Ready()
		fmt.Println(ready)
	}()
	return fail(operator.Run(context.Background()))
}

func fail(err error) int {
	fmt.Fprintln(os.Stderr, "the replica:", err)
	return 1
}

// spawn starts a replica as a process, and returns when it is ready.
func (r replica) spawn(t *testing.T) *os.Process {
	t.Helper()
	g := gomega.NewWithT(t)
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	g.Expect(os.WriteFile(kubeconfig, cluster.KubeConfig(), 0o600)).To(gomega.Succeed())
	command := exec.Command(os.Args[0])
	command.Env = append(os.Environ(), namespaceVariable+"="+r.namespace, urlVariable+"="+r.url, portVariable+"="+strconv.Itoa(r.port), "KUBECONFIG="+kubeconfig)
	command.Stderr = os.Stderr
	output, err := command.StdoutPipe()
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(command.Start()).To(gomega.Succeed())
	said := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(output).ReadString('\n')
		said <- line
		_ = command.Wait()
	}()
	t.Cleanup(func() { _ = command.Process.Kill() })
	g.Eventually(said).WithTimeout(testenv.Patience).Should(gomega.Receive(gomega.Equal(ready + "\n")))
	return command.Process
}
