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
)

// nobody is an API server that does not answer.
func nobody() *rest.Config { return &rest.Config{Host: "http://127.0.0.1:1"} }

func TestMistakesAreFoundBeforeAnythingIsStarted(t *testing.T) {
	declared := NewRegistry()
	declared.OnCreate(Resource("kex"), createFn, Timeout(-1))
	declared.OnUpdate(Resource("kex"), func(context.Context, *Change) error { return nil })
	admitting := NewRegistry()
	admitting.OnValidate(Resource("kex"), admitFn)
	tests := map[string]struct {
		options Options
		want    []string
	}{
		"in the declarations": {Options{Registry: declared, Config: nobody()}, []string{
			"the handlers cannot be used as they are declared:\n", "the timeout -1ns is negative", "a function literal has no name",
		}},
		"in the settings": {Options{Registry: NewRegistry(), Config: nobody(), Settings: negative()}, []string{
			"the settings cannot be used:\n", "settings.Execution.Workers is negative",
		}},
		"in that nobody receives admission reviews": {Options{Registry: admitting, Config: nobody()}, []string{
			"there are admission handlers, but no server", "set Settings.Admission.Server",
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			err := Run(t.Context(), test.options)
			for _, want := range test.want {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("got %v, want %q in it", err, want)
				}
			}
		})
	}
}

func negative() (s Settings) {
	s.Execution.Workers = -1
	return s
}

func TestNoClusterIsAnError(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	t.Setenv("HOME", t.TempDir())
	if err := Run(t.Context(), Options{}); err == nil || !strings.Contains(err.Error(), "no cluster is configured: set KUBECONFIG") {
		t.Errorf("got %v", err)
	}
}

// That an event cannot be reported is no reason for a handler to fail.
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
			if len(lines) != 1 || !strings.Contains(lines[0], "An event is not reported.") || !strings.Contains(lines[0], "the context is not that of a handler") {
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
	if err := Run(ctx, Options{Registry: NewRegistry(), Config: nobody()}); err != nil {
		t.Errorf("got %v", err)
	}
}
