// Package webhooks tests admission servers and their configurations with a real API
// server, which calls them with HTTPS on the loopback interface.
package webhooks

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-go/kopf/pkg/model/selector"
	"github.com/kopf-go/kopf/pkg/settings"
	"github.com/kopf-go/kopf/pkg/webhook/configurations"
	"github.com/kopf-go/kopf/pkg/webhook/servers"
	"github.com/kopf-go/kopf/test/testenv"
)

var cluster *testenv.Cluster

func TestMain(m *testing.M) { testenv.Main(m, &cluster, testenv.Options{}) }

var (
	configMaps = selector.Resource{Version: "v1", Plural: "configmaps", Namespaced: true}
	leases     = selector.Resource{Group: "coordination.k8s.io", Version: "v1", Plural: "leases", Namespaced: true}
)

// operator is the part of an operator that serves admission reviews.
type operator struct {
	*configurations.Manager
	reviews atomic.Int64
	mu      sync.Mutex
	log     []string
	stop    func() // exits in order, with the cleanup
	kill    func() // exits without the cleanup
}

// run runs an operator until the end of the test, unless it is stopped before.
func run(t *testing.T, config *rest.Config, server settings.AdmissionServer, options configurations.Options, hooks ...configurations.Hook) *operator {
	t.Helper()
	g := gomega.NewWithT(t)
	c, err := client.New(config, client.Options{})
	g.Expect(err).NotTo(gomega.HaveOccurred())
	connected, err := configurations.NewEndpoint(config, c)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	o := &operator{}
	o.Manager = configurations.NewManager(c, options, o.logger())
	o.SetHooks(hooks)

	serving, stopServing := context.WithCancel(logf.IntoContext(context.Background(), o.logger()))
	leading, stopLeading := context.WithCancel(context.Background())
	var parts sync.WaitGroup
	parts.Go(func() {
		if err := server.Serve(serving, o.Endpoint(http.HandlerFunc(o.review), connected)); err != nil {
			t.Error(err)
		}
	})
	parts.Go(func() { o.RunLeader(leading) })
	o.kill = sync.OnceFunc(func() {
		stopLeading()
		stopServing()
		parts.Wait()
	})
	o.stop = func() {
		stopLeading()
		g.Expect(o.Cleanup(context.Background())).To(gomega.Succeed())
		o.kill()
	}
	t.Cleanup(func() {
		o.kill()
		remove(t, options.Name)
	})
	return o
}

// review admits all objects whose names do not begin with "denied".
func (o *operator) review(w http.ResponseWriter, r *http.Request) {
	o.reviews.Add(1)
	review := admissionv1.AdmissionReview{}
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil || review.Request == nil {
		http.Error(w, "no review", http.StatusBadRequest)
		return
	}
	review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: !strings.HasPrefix(review.Request.Name, "denied")}
	if r.TLS != nil && len(r.TLS.VerifiedChains) > 0 {
		review.Response.Warnings = []string{"SSL peer is " + r.TLS.PeerCertificates[0].Subject.CommonName + "."}
	}
	if user, _, ok := r.BasicAuth(); ok {
		review.Response.Warnings = append(review.Response.Warnings, "The user is "+user+".")
	}
	review.Request = nil
	_ = json.NewEncoder(w).Encode(review)
}

func (o *operator) logger() logr.Logger {
	return funcr.New(func(_, text string) {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.log = append(o.log, text)
	}, funcr.Options{})
}

func (o *operator) logged() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return append([]string{}, o.log...)
}

// remove deletes the configurations, for other tests.
func remove(t *testing.T, name string) {
	t.Helper()
	for _, object := range []client.Object{validating(name), mutating(name)} {
		if err := client.IgnoreNotFound(cluster.Client().Delete(context.Background(), object)); err != nil {
			t.Error(err)
		}
	}
}

func validating(name string) *admissionregistrationv1.ValidatingWebhookConfiguration {
	return &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func mutating(name string) *admissionregistrationv1.MutatingWebhookConfiguration {
	return &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// names returns a function that returns the names of the webhooks in both configurations.
func names(t *testing.T, name string) func() ([]string, error) {
	return func() ([]string, error) {
		v, m := validating(name), mutating(name)
		for _, object := range []client.Object{v, m} {
			err := cluster.Client().Get(t.Context(), client.ObjectKeyFromObject(object), object)
			if client.IgnoreNotFound(err) != nil {
				return nil, err
			}
		}
		found := []string{}
		for _, webhook := range v.Webhooks {
			found = append(found, "validating "+webhook.Name)
		}
		for _, webhook := range m.Webhooks {
			found = append(found, "mutating "+webhook.Name)
		}
		return found, nil
	}
}

// try creates a config map in a dry run.
func try(ctx context.Context, namespace, name string) error {
	return cluster.Client().Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}, client.DryRunAll)
}

// local returns a server on a free port.
func local(t *testing.T) servers.Server { return servers.Server{Port: testenv.FreePort(t)} }
