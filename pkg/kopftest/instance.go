package kopftest

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/go-logr/logr"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/kopftest/internal/inprocess"
	"github.com/kopf-go/kopf/pkg/kopftest/internal/watchdog"
	"github.com/kopf-go/kopf/pkg/settings"
)

// instance is one run of the operator.
type instance struct {
	operator *kopf.Operator
	link     *link
	stop     context.CancelFunc
	done     chan struct{} // closed when Run has returned
	err      error         // of Run

	mu      sync.Mutex
	reviews http.Handler // answers admission reviews; nil without a server
}

// newInstance starts an operator.
func (r *runs) newInstance() *instance {
	r.t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	one := &instance{stop: stop, done: make(chan struct{}), link: newLink(inprocess.Transport{Handler: r.server}, r.recording)}
	if r.options.trial != nil {
		one.link.strike = r.options.trial.striker(one) //nolint:bodyclose // the caller gets the response
	}
	config := (&APIServer{server: r.server}).Config()
	config.Transport = one.link
	registry := r.declare()
	if registry == nil {
		stop()
		r.t.Fatal("the registry is nil: return the one in which the handlers are declared, such as kopf.DefaultRegistry")
	}
	r.latest = r.settingsFor(one, registry)
	operator, err := kopf.NewOperator(kopf.Options{
		Registry: registry, Settings: r.latest, Config: config, Scheme: r.options.scheme, Logger: logr.New(sink{recording: r.recording, from: one.link}),
	})
	if err != nil {
		stop()
		r.t.Fatalf("the operator cannot be created: %v", err)
	}
	one.operator = operator
	r.declared = operator.Handlers()
	r.webhooks.latest.Store(one)
	ctx = one.link.observe(ctx)
	go func() {
		defer close(one.done)
		one.err = operator.Run(ctx)
		if one.link.isCut() {
			one.link.endStreams()
		}
	}()
	return one
}

// settingsFor returns the settings of the operator, without everything that needs a network
// or wakes up for nothing.
func (r *runs) settingsFor(one *instance, registry *kopf.Registry) kopf.Settings {
	s := settings.Default()
	s.Networking.QPS = -1
	s.Watching.InactivityTimeout = -1
	s.Peering.Standalone = true
	s.Peering.Identity = "kopftest" // the default identity asks the name service
	if registry.Declarations().HasWebhooks() {
		s.Admission.Server = settings.AdmissionServerFunc(one.serveAdmission)
		s.Admission.Managed = "kopftest"
	}
	if r.options.trial != nil {
		s.Posting.Disabled = true // events are not compared
	}
	for _, change := range r.options.settings {
		change(&s)
	}
	return s
}

// serveAdmission makes the reviews of the operator reachable for the API server.
func (i *instance) serveAdmission(ctx context.Context, endpoint settings.AdmissionEndpoint) error {
	i.setReviews(endpoint.Handler)
	defer i.setReviews(nil)
	if err := endpoint.Publish(ctx, admissionregistrationv1.WebhookClientConfig{URL: new(webhookURL)}); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

// The API server reaches the operator here.
const (
	webhookHost = "operator.kopftest"
	webhookURL  = "https://" + webhookHost
)

func (i *instance) setReviews(handler http.Handler) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.reviews = handler
}

// kill cuts the operator off, and stops what is left of it.
func (i *instance) kill() {
	i.setReviews(nil)
	i.link.cut()
	i.stop()
}

// wait waits until the operator has stopped.
func (i *instance) wait(t *testing.T) {
	t.Helper()
	defer watchdog.Default.Begin()()
	select {
	case <-i.done:
	case <-time.After(startTimeout):
		t.Fatal("the operator has not stopped after an hour of virtual time")
	}
	if i.err != nil && !i.link.isCut() {
		t.Errorf("the operator has ended with an error: %v", i.err)
	}
}

// webhooks connects the API server with the latest run of the operator.
type webhooks struct{ latest atomic.Pointer[instance] }

// RoundTrip sends a review to the operator.
func (w *webhooks) RoundTrip(request *http.Request) (*http.Response, error) {
	one := w.latest.Load()
	if one == nil || request.URL.Host != webhookHost {
		return nil, errors.New("connection refused: " + request.URL.Host)
	}
	one.mu.Lock()
	reviews := one.reviews
	one.mu.Unlock()
	if reviews == nil {
		return nil, errors.New("connection refused: the operator does not serve reviews")
	}
	return inprocess.Transport{Handler: reviews}.RoundTrip(request.WithContext(one.link.observe(request.Context())))
}
