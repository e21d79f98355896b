package admission

import (
	"context"
	"flag"
	"io"
	"net"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/settings"
	"github.com/kopf-go/kopf/test/operators"
	"github.com/kopf-go/kopf/test/testenv"
)

var (
	restarts  = flag.Int("restarts", 4, "the number of restarts in a rolling update")
	frequency = flag.Int("frequency", 50, "the number of reviewed requests per second in a rolling update")
)

// service forwards connections to replicas, as a Service does. It learns late that one stops.
type service struct {
	t        *testing.T
	listener net.Listener
	mu       sync.Mutex
	ports    []int
	next     int
}

// learning is how late a service learns that a replica stops.
const learning = 200 * time.Millisecond

func newService(t *testing.T) *service {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	s := &service{t: t, listener: listener}
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			go s.forward(connection)
		}
	}()
	return s
}

func (s *service) url() string { return "https://" + s.listener.Addr().String() }

func (s *service) add(port int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ports = append(s.ports, port)
}

// removeLate removes a replica that was asked to stop.
func (s *service) removeLate(port int) {
	time.AfterFunc(learning, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.ports = slices.DeleteFunc(s.ports, func(one int) bool { return one == port })
	})
}

// forward connects to the next replica, and copies until both sides have ended.
func (s *service) forward(from net.Conn) {
	defer func() { _ = from.Close() }()
	s.mu.Lock()
	s.next++
	port := s.ports[s.next%len(s.ports)]
	s.mu.Unlock()
	to, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return
	}
	defer func() { _ = to.Close() }()
	var both sync.WaitGroup
	for _, way := range [][2]net.Conn{{from, to}, {to, from}} {
		both.Go(func() {
			_, _ = io.Copy(way[1], way[0])
			_ = way[1].(*net.TCPConn).CloseWrite()
		})
	}
	both.Wait()
}

// Replicas take turns as in a rolling update: the new one is ready before the old one stops. Every
// request is reviewed, and none fails.
func TestNoRequestIsMissedInARollingUpdate(t *testing.T) {
	g, namespace, endpoint, logs := gomega.NewWithT(t), cluster.Namespace(t), newService(t), &operators.Journal{}
	r := kopf.NewRegistry()
	r.OnMutate(examples, func(_ context.Context, a *kopf.Admission) error {
		a.Patch().Set("yes", "metadata", "labels", "mutated")
		return nil
	}, kopf.ID("mutate"))
	r.OnValidate(examples, func(_ context.Context, a *kopf.Admission) error {
		if a.Name() == "bad" {
			return kopf.Reject("bad", 418)
		}
		return nil
	}, kopf.ID("validate"))
	start := func() (stop func()) {
		port := testenv.FreePort(t)
		server := kopf.WebhookServer{Addr: "127.0.0.1", Port: port, Secret: namespace + "/webhooks", Rotation: 2 * time.Second}
		replica := operators.Start(t, cluster.Config(), namespace, r, func(o *kopf.Options) {
			o.Logger = logs.Logger()
			o.Settings.Replicas = settings.Replicas{
				LeaderElection: true, LeaseName: namespace, LeaseNamespace: namespace,
				LeaseDuration: 3 * time.Second, RenewDeadline: 2 * time.Second, RetryPeriod: 100 * time.Millisecond,
			}
			o.Settings.Admission.Managed = namespace + ".kopf.dev"
			o.Settings.Admission.ShutdownDelay = 3 * learning
			o.Settings.Admission.Server = kopf.AdmissionServerFunc(func(ctx context.Context, of kopf.AdmissionEndpoint) error {
				publish := of.Publish
				of.Publish = func(ctx context.Context, config admissionregistrationv1.WebhookClientConfig) error {
					config.URL = new(endpoint.url())
					return publish(ctx, config)
				}
				return server.Serve(ctx, of)
			})
		})
		endpoint.add(port)
		return func() {
			endpoint.removeLate(port)
			replica.Stop()
		}
	}
	stop := start()
	good, bad := testenv.NewObject("KopfExample", namespace, "good", nil), testenv.NewObject("KopfExample", namespace, "bad", nil)
	g.Eventually(func() error { return cluster.Client().Create(t.Context(), bad.DeepCopy(), client.DryRunAll) }).Should(haveCode(418, "bad"))

	ctx, cancel := context.WithCancel(t.Context())
	var mu sync.Mutex
	var wrong []string
	var sent int
	var load sync.WaitGroup
	load.Go(func() {
		tick := time.NewTicker(time.Second / time.Duration(*frequency))
		defer tick.Stop()
		for number := 0; ctx.Err() == nil; number++ {
			<-tick.C
			load.Go(func() {
				object, note := good.DeepCopy(), ""
				if number%2 == 0 {
					object = bad.DeepCopy()
				}
				err := cluster.Client().Create(context.WithoutCancel(ctx), object, client.DryRunAll)
				matched, _ := haveCode(418, "bad").Match(err)
				switch {
				case number%2 == 0 && matched:
				case number%2 == 0:
					note = "not validated"
				case err == nil && object.GetLabels()["mutated"] != "yes":
					note = "not mutated"
				}
				mu.Lock()
				defer mu.Unlock()
				if sent++; note != "" || err != nil && !matched {
					wrong = append(wrong, note)
					t.Logf("%s: request %d: %s %v", time.Now().Format(time.StampMilli), number, note, err)
				}
			})
		}
	})
	for range *restarts {
		next := start()
		stop()
		stop = next
	}
	cancel()
	load.Wait()
	t.Logf("%d requests", sent)
	g.Expect(wrong).To(gomega.BeEmpty(), "of %d requests\n%s", sent, logs.String())
	stop()
	g.Expect(webhooks(t, namespace)()).To(gomega.Equal(1))
}
