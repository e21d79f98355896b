package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime/schema"
	cradmission "sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/internal/handlertest"
	"github.com/kopf-go/kopf/internal/registry"
	"github.com/kopf-go/kopf/pkg/model/selector"
	"github.com/kopf-go/kopf/pkg/webhook"
)

// admission holds the cost of an empty validation, with this project and with
// controller-runtime alone, over TLS on loopback. First the calls to both webhooks
// alternate, one after another; then the clients make as many calls as they can.
type admission struct {
	Calls  int       `json:"calls"`
	Ours   Latencies `json:"ours"`
	Theirs Latencies `json:"theirs"`
	// Time is the total time of sequential calls, relative to controller-runtime.
	Time float64 `json:"timeRatio"`
}

// Latencies holds the latencies of one webhook.
type Latencies struct {
	Median         time.Duration `json:"medianNanoseconds"`
	P99            time.Duration `json:"p99Nanoseconds"`
	CallsPerSecond float64       `json:"callsPerSecond"` // with all clients at the same time
}

// goalAdmission is the maximum time of a call, relative to controller-runtime.
const goalAdmission = 1.15

// measureAdmission measures both webhooks.
func measureAdmission(ctx context.Context, o options) (*admission, error) {
	body, err := newReview(o.size)
	if err != nil {
		return nil, err
	}
	ours, err := newAsker(emptyValidation(), body)
	if err != nil {
		return nil, err
	}
	defer ours.close()
	theirs, err := newAsker(&cradmission.Webhook{
		Handler: cradmission.HandlerFunc(func(context.Context, cradmission.Request) cradmission.Response { return cradmission.Allowed("") }),
		LogConstructor: func(logr.Logger, *cradmission.Request) logr.Logger {
			return logr.Discard()
		},
	}, body)
	if err != nil {
		return nil, err
	}
	defer theirs.close()
	both := [2]*asker{ours, theirs}
	times, err := byTurns(ctx, both, o.calls)
	if err != nil {
		return nil, err
	}
	a := &admission{Calls: o.calls, Time: float64(sum(times[0])) / float64(sum(times[1]))}
	for i, into := range []*Latencies{&a.Ours, &a.Theirs} {
		slices.Sort(times[i])
		into.Median, into.P99 = times[i][len(times[i])/2], times[i][len(times[i])*99/100]
		if into.CallsPerSecond, err = both[i].together(ctx, o.calls, o.clients); err != nil {
			return nil, err
		}
	}
	return a, nil
}

// emptyValidation returns a webhook of this project that admits everything.
func emptyValidation() http.Handler {
	kex := selector.New("kopf.dev", "v1", "kopfexamples")
	empty := handlertest.Function(func(context.Context, *handler.Call) error { return nil })
	declaration, err := handler.Validate(kex, empty, handler.ID("review"))
	if err != nil {
		return http.NotFoundHandler() // the first call reports that
	}
	resource := selector.Resource{Group: "kopf.dev", Version: "v1", Plural: "kopfexamples", Kind: "KopfExample", Preferred: true}
	return webhook.New(webhook.Options{
		Handlers: registry.Handlers{declaration}, Logger: logr.Discard(),
		Resources: func(schema.GroupVersionResource) (selector.Resource, bool) { return resource, true },
	})
}

// newReview returns a review of an example with so many bytes.
func newReview(size int) ([]byte, error) {
	object, err := newExample(1, size)
	if err != nil {
		return nil, err
	}
	return json.Marshal(map[string]any{
		"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": map[string]any{
			"uid": "705ab4f5-6393-11e8-b7cc-42010a800002", "operation": "CREATE", "name": "example", "namespace": "default",
			"kind":     map[string]any{"group": "kopf.dev", "version": "v1", "kind": "KopfExample"},
			"resource": map[string]any{"group": "kopf.dev", "version": "v1", "resource": "kopfexamples"},
			"userInfo": map[string]any{"username": "admin", "groups": []string{"system:masters", "system:authenticated"}},
			"object":   json.RawMessage(object), "dryRun": false,
		},
	})
}

// asker calls a webhook over persistent connections, like an API server.
type asker struct {
	server *httptest.Server
	client *http.Client
	body   []byte
}

func newAsker(served http.Handler, body []byte) (*asker, error) {
	server := serveTLS(served)
	a := &asker{server: server, client: server.Client(), body: body}
	if err := a.ask(context.Background()); err != nil {
		a.close()
		return nil, err
	}
	return a, nil
}

// serveTLS serves a handler on loopback, like an API server.
func serveTLS(served http.Handler) *httptest.Server {
	server := httptest.NewUnstartedServer(served)
	server.EnableHTTP2 = true
	server.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	server.StartTLS()
	return server
}

func (a *asker) close() { a.server.Close() }

// ask makes one call, and returns an error unless the object is admitted.
func (a *asker) ask(ctx context.Context) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, a.server.URL+"/review?timeout=10s", bytes.NewReader(a.body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	answer, err := a.client.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return err
	}
	if answer.StatusCode != http.StatusOK || !bytes.Contains(text, []byte(`"allowed":true`)) {
		return fmt.Errorf("the webhook answered %s: %s", answer.Status, text)
	}
	return nil
}

// byTurns calls both in turns, so that other load on the machine affects both. The
// first tenth of the calls is for warming up.
func byTurns(ctx context.Context, both [2]*asker, calls int) (times [2][]time.Duration, err error) {
	for n := -calls / 10; n < calls; n++ {
		for turn := range both {
			i := (turn + n&1) % 2
			began := time.Now()
			if err := both[i].ask(ctx); err != nil {
				return times, err
			}
			if n >= 0 {
				times[i] = append(times[i], time.Since(began))
			}
		}
	}
	return times, nil
}

// together returns the number of calls per second of concurrent clients.
func (a *asker) together(ctx context.Context, calls, clients int) (float64, error) {
	var asking sync.WaitGroup
	failures := make(chan error, clients)
	began := time.Now()
	for range clients {
		asking.Go(func() {
			for range calls / clients {
				if err := a.ask(ctx); err != nil {
					failures <- err
					return
				}
			}
		})
	}
	asking.Wait()
	took := time.Since(began)
	select {
	case err := <-failures:
		return 0, err
	default:
		return float64(calls/clients*clients) / took.Seconds(), nil
	}
}

func sum(times []time.Duration) (total time.Duration) {
	for _, one := range times {
		total += one
	}
	return total
}

// print writes the figures as text.
func (a *admission) print(out io.Writer) {
	_, _ = fmt.Fprintf(out, "\n%d calls of an empty validation over TLS, with this project and with controller-runtime alone:\n", a.Calls)
	for _, line := range []struct {
		name string
		Latencies
	}{{"this project", a.Ours}, {"controller-runtime", a.Theirs}} {
		_, _ = fmt.Fprintf(out, "  %s: p50 %d µs, p99 %d µs, %.0f calls/s\n", line.name, line.Median.Microseconds(), line.P99.Microseconds(), line.CallsPerSecond)
	}
	_, _ = fmt.Fprintf(out, "  time relative to controller-runtime: %.2f (goal: %.2f)\n", a.Time, goalAdmission)
}
