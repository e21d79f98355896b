package operator

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/internal/handlertest"
	"github.com/kopf-go/kopf/internal/registry"
	"github.com/kopf-go/kopf/pkg/login"
	"github.com/kopf-go/kopf/pkg/settings"
)

// unreachable is an API server that does not answer.
func unreachable() *rest.Config { return &rest.Config{Host: "http://127.0.0.1:1"} }

func TestDefaultsOfOptions(t *testing.T) {
	options := Options{Config: unreachable()}.withDefaults()
	if options.Scheme != scheme.Scheme || options.Logger.GetSink() == nil {
		t.Errorf("got %+v", options)
	}
	c, err := newConnection(t.Context(), &Operator{options: options}).config()
	if err != nil || c.QPS != -1 || c.Burst != 400 || !strings.HasPrefix(c.UserAgent, rest.DefaultKubernetesUserAgent()+" kopf-go") || c.Host != unreachable().Host {
		t.Fatalf("got %+v, %v", c, err)
	}
	if c.Dial != nil {
		t.Error("clients share connections only if they dial as client-go does")
	}
}

// The configuration belongs to the developer, who may use it for other things.
func TestOptionsAreNotChanged(t *testing.T) {
	given := &rest.Config{Host: "http://a", QPS: 1, UserAgent: "mine"}
	var s settings.Settings
	s.Networking.QPS, s.Networking.ConnectTimeout = -1, time.Second
	c, err := newConnection(t.Context(), &Operator{options: Options{Config: given}, settings: s}).config()
	if err != nil || given.QPS != 1 || given.Burst != 0 {
		t.Errorf("got %+v, %v", given, err)
	}
	if c.QPS != -1 || c.UserAgent != "mine" || c.Dial == nil || given.Dial != nil {
		t.Errorf("got %+v", c)
	}
}

// The requests of an operator without a foreign manager pass one window, however often it connects.
func TestRequestsPassTheWindow(t *testing.T) {
	for _, limit := range []int{0, 7, -1} {
		var s settings.Settings
		s.Networking.MaxInFlight = limit
		given := unreachable()
		sent := 0
		given.Transport = roundTripper(func(*http.Request) (*http.Response, error) {
			sent++
			return &http.Response{StatusCode: http.StatusTooManyRequests, Header: http.Header{}, Body: http.NoBody}, nil
		})
		o := &Operator{options: Options{Config: given}, settings: s}
		c := newConnection(t.Context(), o)
		for range 2 {
			config, err := c.config()
			if err != nil {
				t.Fatal(err)
			}
			client, err := rest.HTTPClientFor(config)
			if err != nil {
				t.Fatal(err)
			}
			request, err := http.NewRequestWithContext(t.Context(), http.MethodPatch, "http://127.0.0.1:1/api/v1/namespaces/one", http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			response, err := client.Do(request)
			if err != nil {
				t.Fatal(err)
			}
			_ = response.Body.Close()
		}
		want := int64(2)
		if limit < 0 {
			want = 0
		}
		if closed := o.window.State().Closed["refused"]; closed != want || sent != 2 {
			t.Errorf("with the limit %d: the window has closed %d times", limit, closed)
		}
	}
}

// In the manager of another program, the requests of the operator pass its window, and those of all others do
// not: the client of the manager stays as it is.
func TestRequestsInAManagerPassAWindow(t *testing.T) {
	for _, limit := range []int{7, -1} {
		var s settings.Settings
		s.Networking.MaxInFlight = limit
		theirs := &http.Client{Timeout: time.Minute, Transport: roundTripper(func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: http.StatusTooManyRequests, Header: http.Header{}, Body: http.NoBody}, nil
		})}
		o := &Operator{inManager: true}
		ours := o.connected(withClient{client: theirs}, s)
		if ours.Timeout != theirs.Timeout || (ours == theirs) != (limit < 0) {
			t.Errorf("got %+v", ours)
		}
		for _, client := range []*http.Client{ours, theirs} {
			request, err := http.NewRequestWithContext(t.Context(), http.MethodPatch, "http://127.0.0.1:1/api/v1/namespaces/one", http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			response, err := client.Do(request)
			if err != nil {
				t.Fatal(err)
			}
			_ = response.Body.Close()
		}
		if limit > 0 && o.window.State().Closed["refused"] != 1 {
			t.Errorf("got %+v", o.window.State())
		}
	}
}

// withClient is a manager of another program.
type withClient struct {
	manager.Manager
	client *http.Client
}

func (w withClient) GetHTTPClient() *http.Client { return w.client }

type roundTripper func(*http.Request) (*http.Response, error)

func (r roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return r(request) }

func TestLoginHandlerConnectsTheOperator(t *testing.T) {
	call := func(_ context.Context, a *handler.Call) (any, error) {
		if a.Context.Client != nil {
			t.Error("there is a client before the login")
		}
		return &login.Connection{Config: unreachable()}, nil
	}
	var r registry.Registry
	r.Add(handler.ForOperator(handler.OnLogin, handlertest.Returning(call), handler.ID("login")))
	o, err := NewOperator(Options{Registry: &r})
	if err != nil {
		t.Fatal(err)
	}
	c := newConnection(t.Context(), o)
	defer c.close()
	if config, err := c.config(); err != nil || config.Host != unreachable().Host || config.QPS != settings.DefaultQPS {
		t.Errorf("got %v, %v", config, err)
	}
}
