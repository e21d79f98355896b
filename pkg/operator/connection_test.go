package operator

import (
	"context"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

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
	if err != nil || c.QPS != 200 || c.Burst != 400 || !strings.HasPrefix(c.UserAgent, rest.DefaultKubernetesUserAgent()+" kopf-go") || c.Host != unreachable().Host {
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
