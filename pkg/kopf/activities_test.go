package kopf

import (
	"context"
	"errors"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/kopf-go/kopf/pkg/login"
	"github.com/kopf-go/kopf/pkg/model/memo"
)

var errNo = errors.New("no")

// The operator ends before it calls the cluster, which does not exist.
func TestAnOperatorDoesNotStartWithoutItsStartupHandlers(t *testing.T) {
	r := NewRegistry()
	var called []string
	r.OnStartup(func(context.Context, *Startup) error { called = append(called, "first"); return nil }, ID("first"))
	r.OnStartup(func(context.Context, *Startup) error { called = append(called, "second"); return Permanent(errNo) }, ID("second"))
	r.OnStartup(func(context.Context, *Startup) error { called = append(called, "third"); return nil }, ID("third"))
	r.OnCleanup(func(context.Context, *Activity) error { called = append(called, "cleanup"); return nil }, ID("cleanup"))
	err := Run(t.Context(), Options{Registry: r, Config: unreachable()})
	if !errors.Is(err, errNo) || !strings.Contains(err.Error(), "the startup handler second (kopf/activities_test.go:") {
		t.Errorf("got %v", err)
	}
	if got := strings.Join(called, " "); got != "first second" {
		t.Errorf("got %s", got)
	}
}

func TestStartupHandlersChangeTheSettings(t *testing.T) {
	r := NewRegistry()
	r.OnStartup(func(_ context.Context, s *Startup) error { s.Settings().Execution.Workers = 7; return nil }, ID("more"))
	r.OnStartup(func(_ context.Context, s *Startup) error {
		if s.Settings().Execution.Workers != 7 {
			t.Errorf("got %d", s.Settings().Execution.Workers)
		}
		s.Settings().Execution.Workers = -7
		return nil
	}, ID("less"))
	cleaned := false
	r.OnCleanup(func(context.Context, *Activity) error { cleaned = true; return nil }, ID("cleanup"))
	var given Settings
	err := Run(t.Context(), Options{Registry: r, Config: unreachable(), Settings: given})
	if err == nil || !strings.Contains(err.Error(), "settings.Execution.Workers is negative: -7") || given.Execution.Workers != 0 {
		t.Errorf("got %v, %d", err, given.Execution.Workers)
	}
	if !cleaned {
		t.Error("the handlers have started, but are not cleaned up after")
	}
}

func TestAnOperatorThatIsStoppedWhileItStarts(t *testing.T) {
	r := NewRegistry()
	ctx, cancel := context.WithCancel(t.Context())
	r.OnStartup(func(context.Context, *Startup) error { cancel(); return errNo }, ID("stopped"))
	if err := Run(ctx, Options{Registry: r, Config: unreachable()}); err != nil {
		t.Errorf("got %v", err)
	}
}

func TestActivitiesHaveTheMemoOfTheOperatorAndAClient(t *testing.T) {
	r, memo := NewRegistry(), memo.New(func() *int { return new(int) }, nil)
	r.OnStartup(func(_ context.Context, s *Startup) error {
		*memo.Of(s) = 5
		if s.Client() == nil || s.Param() != "p" || s.Retry() != 0 {
			t.Errorf("got %v, %v, %d", s.Client(), s.Param(), s.Retry())
		}
		return nil
	}, ID("startup"), Param("p"))
	seen := 0
	r.OnCleanup(func(_ context.Context, a *Activity) error { seen = *memo.Of(a); return nil }, ID("cleanup"))
	ctx, cancel := context.WithCancel(t.Context())
	r.OnStartup(func(context.Context, *Startup) error { cancel(); return nil }, ID("enough"))
	if err := Run(ctx, Options{Registry: r, Config: &rest.Config{Host: "http://127.0.0.1:1"}}); err != nil || seen != 5 {
		t.Errorf("got %v, %d", err, seen)
	}
}

func TestMistakesInActivities(t *testing.T) {
	tests := map[string]struct {
		declare func(r *Registry)
		want    string
	}{
		"no function": {func(r *Registry) { r.OnCleanup(nil) }, "the function is nil"},
		"no name": {
			func(r *Registry) { r.OnProbe(func(context.Context, *Activity) (any, error) { return nil, errNo }) },
			"a function literal has no name",
		},
		"one id for two": {func(r *Registry) {
			r.OnCleanup(func(context.Context, *Activity) error { return nil }, ID("a"))
			r.OnCleanup(func(context.Context, *Activity) error { return errNo }, ID("a"))
		}, `the id "a" is taken by another function`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r := NewRegistry()
			test.declare(r)
			if err := Run(t.Context(), Options{Registry: r, Config: unreachable()}); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestALoginHandlerExcludesAConfig(t *testing.T) {
	r := NewRegistry()
	r.OnLogin(func(context.Context, *Activity) (*login.Connection, error) { return nil, errNo }, ID("login"))
	if err := Run(t.Context(), Options{Registry: r, Config: unreachable()}); err == nil || !strings.Contains(err.Error(), "Options.Config has no effect") {
		t.Errorf("got %v", err)
	}
}

func TestALoginThatFailsEndsTheOperator(t *testing.T) {
	r := NewRegistry()
	r.OnLogin(func(context.Context, *Activity) (*login.Connection, error) { return nil, Permanent(errNo) }, ID("login"))
	if err := Run(t.Context(), Options{Registry: r}); !errors.Is(err, errNo) || !strings.Contains(err.Error(), "the operator cannot log in") {
		t.Errorf("got %v", err)
	}
}
