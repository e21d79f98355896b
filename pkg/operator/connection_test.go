package operator

import (
	"context"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/kopf-go/kopf/pkg/login"
	"github.com/kopf-go/kopf/pkg/model/handler"
	"github.com/kopf-go/kopf/pkg/model/registry"
	"github.com/kopf-go/kopf/pkg/settings"
)

// nobody is an API server that does not answer.
func nobody() *rest.Config { return &rest.Config{Host: "http://127.0.0.1:1"} }

func TestDefaultsOfOptions(t *testing.T) {
	options := Options{Config: nobody()}.withDefaults()
	if options.Scheme != scheme.Scheme || options.Logger.GetSink() == nil {
		t.Errorf("got %+v", options)
	}
	c, err := newConnection(t.Context(), &operator{options: options}).config()
	if err != nil || c.QPS != 200 || c.Burst != 400 || c.UserAgent != "kopf-go" || c.Host != nobody().Host {
		t.Fatalf("got %+v, %v", c, err)
	}
	if c.Dial != nil {
		t.Error("client-go's own way to connect is the default: clients share their connections then")
	}
}

// The configuration belongs to the developer, who may use it for other things.
func TestOptionsAreLeftAsTheyAre(t *testing.T) {
	given := &rest.Config{Host: "http://a", QPS: 1, UserAgent: "mine"}
	var s settings.Settings
	s.Networking.QPS, s.Networking.ConnectTimeout = -1, time.Second
	c, err := newConnection(t.Context(), &operator{options: Options{Config: given}, settings: s}).config()
	if err != nil || given.QPS != 1 || given.Burst != 0 {
		t.Errorf("got %+v, %v", given, err)
	}
	if c.QPS != -1 || c.UserAgent != "mine" || c.Dial == nil || given.Dial != nil {
		t.Errorf("got %+v", c)
	}
}

// The configuration of a login handler is the one that is used.
func TestALoginHandlerConnectsTheOperator(t *testing.T) {
	call := func(_ context.Context, a *handler.Activity) (any, error) {
		if a.Client() != nil {
			t.Error("there is a client before the login")
		}
		return &login.Connection{Config: nobody()}, nil
	}
	var r registry.Registry
	r.Add(handler.ForOperator(handler.OnLogin, handler.Function{Activity: call}, handler.ID("login")))
	o, err := newOperator(Options{Registry: &r}.withDefaults(), scheme.Scheme)
	if err != nil {
		t.Fatal(err)
	}
	c := newConnection(t.Context(), o)
	defer c.close()
	if config, err := c.config(); err != nil || config.Host != nobody().Host || config.QPS != settings.DefaultQPS {
		t.Errorf("got %v, %v", config, err)
	}
}
