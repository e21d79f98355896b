package kopf

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-go/kopf/pkg/login"
)

// unreachable is an API server that does not answer.
func unreachable() *rest.Config { return &rest.Config{Host: "http://127.0.0.1:1"} }

func TestMistakesAreFoundBeforeAnythingStarts(t *testing.T) {
	declared, connecting := NewRegistry(), NewRegistry()
	declared.OnCreate(Resource("kex"), createFn, Timeout(-1))
	declared.OnUpdate(Resource("kex"), func(context.Context, *Change) error { return nil })
	connecting.OnLogin(func(context.Context, *Activity) (*login.Connection, error) { return nil, nil }, ID("login")) //nolint:nilnil // it is not called
	connect := func(context.Context) (*rest.Config, error) { return unreachable(), nil }
	tests := map[string]struct {
		options Options
		want    []string
	}{
		"declarations": {Options{Registry: declared}, []string{
			"the declarations of handlers are invalid:\n", "the timeout -1ns is negative", "a function literal has no name",
		}},
		"settings": {Options{Registry: NewRegistry(), Settings: negative()}, []string{
			"the settings are invalid:\n", "settings.Execution.Workers is negative",
		}},
		"two connections": {Options{Registry: NewRegistry(), Config: unreachable(), Connect: connect}, []string{
			"Options.Connect has no effect, because Options.Config is set: leave out one of them",
		}},
		"a connection and a login handler": {Options{Registry: connecting, Config: unreachable(), Connect: connect}, []string{
			`Options.Config has no effect, because the login handler "login" (`, "Options.Connect has no effect, because the login handler",
		}},
		"the check of a manager": {Options{Registry: NewRegistry(), Settings: checked()}, []string{
			"settings.Health.ManagerCheck is for an operator that kopf.Add adds to a manager: set settings.Health.Address instead",
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := NewOperator(test.options)
			for _, want := range test.want {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("got %v, want %q in it", err, want)
				}
			}
		})
	}
}

func TestAdmissionHandlersNeedAServer(t *testing.T) {
	admitting := NewRegistry()
	admitting.OnValidate(Resource("kex"), admitFn)
	err := Run(t.Context(), Options{Registry: admitting, Config: unreachable()})
	if err == nil || !strings.Contains(err.Error(), "there are admission handlers, but no server") {
		t.Errorf("got %v", err)
	}
}

func TestStartupHandlerCannotSetTheCheckOfAManager(t *testing.T) {
	r := NewRegistry()
	r.OnStartup(func(_ context.Context, s *Startup) error { *s.Settings() = checked(); return nil }, ID("startup"))
	if err := Run(t.Context(), Options{Registry: r, Config: unreachable()}); err == nil || !strings.Contains(err.Error(), "settings.Health.ManagerCheck is for") {
		t.Errorf("got %v", err)
	}
}

func checked() (s Settings) {
	s.Health.ManagerCheck = "kopf"
	return s
}

func negative() (s Settings) {
	s.Execution.Workers = -1
	return s
}

func TestNoClusterIsAnError(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	t.Setenv("HOME", t.TempDir())
	if err := Run(t.Context(), Options{Registry: NewRegistry()}); err == nil || !strings.Contains(err.Error(), "no cluster is configured: set KUBECONFIG") {
		t.Errorf("got %v", err)
	}
}

// A handler does not fail because an event cannot be reported.
func TestEventsOutsideOfHandlersAreLogged(t *testing.T) {
	report := map[string]func(ctx context.Context){
		"an event":     func(ctx context.Context) { Event(ctx, "Normal", "A", "b") },
		"a message":    func(ctx context.Context) { Info(ctx, "A", "b") },
		"a warning":    func(ctx context.Context) { Warn(ctx, "A", "b") },
		"an exception": func(ctx context.Context) { Exception(ctx, "A", "b", errors.New("c")) },
	}
	for name, report := range report {
		t.Run(name, func(t *testing.T) {
			var lines []string
			report(logInto(t.Context(), &lines))
			if len(lines) != 1 || !strings.Contains(lines[0], "An event is not reported.") || !strings.Contains(lines[0], "the context does not belong to a handler") {
				t.Errorf("got %q", lines)
			}
		})
	}
	if err := EventFor(t.Context(), &corev1.Pod{}, "Normal", "A", "b"); err == nil {
		t.Error("nothing is wrong")
	}
}

func logInto(ctx context.Context, lines *[]string) context.Context {
	return log.IntoContext(ctx, funcr.New(func(_, args string) { *lines = append(*lines, args) }, funcr.Options{}))
}

func TestRunEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	o, err := NewOperator(Options{Registry: NewRegistry(), Config: unreachable()})
	if err != nil {
		t.Fatal(err)
	}
	if err := o.Run(ctx); err != nil {
		t.Errorf("got %v", err)
	}
	if err := o.Run(ctx); err == nil || !strings.Contains(err.Error(), "was already started") {
		t.Errorf("got %v", err)
	}
	if state := o.State(); state.Ready || state.Leading || state.Watches != nil {
		t.Errorf("got %+v", state)
	}
}
