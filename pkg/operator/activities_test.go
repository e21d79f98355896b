package operator

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/internal/handlertest"
	"github.com/kopf-go/kopf/internal/registry"
	"github.com/kopf-go/kopf/pkg/backoff"
)

var errFailed = errors.New("it has failed")

// callLog records what happens, and when.
type callLog struct {
	mu    sync.Mutex
	begun time.Time
	lines []string
}

func (l *callLog) record(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, text+" "+time.Since(l.begun).String())
}

func (l *callLog) caller() caller {
	l.begun = time.Now()
	return caller{backoff: backoff.Constant(time.Minute)}
}

// handler declares a handler that returns the errors, one after the other, and then
// succeeds.
func (l *callLog) handler(t *testing.T, id string, errs []error, options ...handler.Option) *handler.Declaration {
	t.Helper()
	call := func(_ context.Context, a *handler.Call) (any, error) {
		l.record(id)
		if a.Attempt.Retry < len(errs) {
			return nil, errs[a.Attempt.Retry]
		}
		return id + "'s", nil
	}
	d, err := handler.ForOperator(handler.OnStartup, handlertest.Returning(call), append(options, handler.ID(id))...)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestInOrder(t *testing.T) {
	tests := map[string]struct {
		first   []error
		options []handler.Option
		want    string
		err     string
	}{
		"each when the one before has succeeded": {nil, nil, "a 0s, b 0s", ""},
		"after a regular error":                  {[]error{errFailed}, nil, "a 0s, a 1m0s, b 1m0s", ""},
		"after the backoff of the handler":       {[]error{errFailed}, []handler.Option{handler.Backoff(time.Second)}, "a 0s, a 1s, b 1s", ""},
		"after a temporary error":                {[]error{handler.Temporary(errFailed, 3*time.Second)}, nil, "a 0s, a 3s, b 3s", ""},
		"after errors that are ignored":          {[]error{errFailed}, []handler.Option{handler.Errors(handler.ErrorsIgnored)}, "a 0s, b 0s", ""},
		"not after a permanent error":            {[]error{handler.Permanent(errFailed)}, nil, "a 0s", "the startup handler a"},
		"not after the last retry":               {[]error{errFailed, errFailed}, []handler.Option{handler.Retries(2)}, "a 0s, a 1m0s", "has used up its 2 attempts: it has failed"},
		"not after the timeout":                  {[]error{errFailed, errFailed}, []handler.Option{handler.Timeout(90 * time.Second)}, "a 0s, a 1m0s", "has timed out after 1m30s: it has failed"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var l callLog
				handlers := registry.Handlers{l.handler(t, "a", test.first, test.options...), l.handler(t, "b", nil)}
				err := l.caller().inOrder(t.Context(), handlers)
				if got := strings.Join(l.lines, ", "); got != test.want {
					t.Errorf("got %s", got)
				}
				if (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
					t.Errorf("got %v", err)
				}
			})
		})
	}
}

func TestEachContinuesAfterFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l callLog
		failed := handler.Permanent(errFailed)
		handlers := registry.Handlers{l.handler(t, "a", []error{failed}), l.handler(t, "b", []error{errFailed}), l.handler(t, "c", []error{failed})}
		err := l.caller().each(t.Context(), handlers)
		if got := strings.Join(l.lines, ", "); got != "a 0s, b 0s, b 1m0s, c 1m0s" {
			t.Errorf("got %s", got)
		}
		if !errors.Is(err, errFailed) || strings.Count(err.Error(), "has failed: it has failed") != 2 {
			t.Errorf("got %v", err)
		}
	})
}

func TestTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		slow := func(id string, err error) *handler.Declaration {
			call := func(context.Context, *handler.Call) (any, error) {
				<-time.After(time.Second)
				return id, err
			}
			d, _ := handler.ForOperator(handler.OnProbe, handlertest.Returning(call), handler.ID(id))
			return d
		}
		results := (&callLog{}).caller().together(t.Context(), registry.Handlers{slow("a", nil), slow("b", handler.Permanent(errFailed)), slow("c", nil)})
		if took := time.Since(begun); took != time.Second {
			t.Errorf("took %s", took)
		}
		if len(results) != 3 || results[0] != (result{id: "a", value: "a"}) || results[2].value != "c" ||
			results[1].id != "b" || results[1].value != nil || !errors.Is(results[1].err, errFailed) {
			t.Errorf("got %+v", results)
		}
	})
}

func TestDoneContextEndsTheRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l callLog
		ctx, cancel := context.WithTimeoutCause(t.Context(), 90*time.Second, errors.New("the operator was stopped"))
		defer cancel()
		err := l.caller().inOrder(ctx, registry.Handlers{l.handler(t, "a", []error{errFailed, errFailed, errFailed})})
		if got := strings.Join(l.lines, ", "); got != "a 0s, a 1m0s" || time.Since(l.begun) != 90*time.Second {
			t.Errorf("got %s, after %s", got, time.Since(l.begun))
		}
		if err == nil || !strings.Contains(err.Error(), "the operator was stopped") || !errors.Is(err, errFailed) {
			t.Errorf("got %v", err)
		}
	})
}

func TestPanicIsAnError(t *testing.T) {
	var lines []string
	logger := funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{})
	call := func(context.Context, *handler.Call) (any, error) { panic("no") }
	d, _ := handler.ForOperator(handler.OnCleanup, handlertest.Returning(call), handler.ID("broken"), handler.Retries(1))
	c := (&callLog{}).caller()
	c.logger = logger
	if err := c.each(t.Context(), registry.Handlers{d}); err == nil || !strings.Contains(err.Error(), "panic: no") {
		t.Errorf("got %v", err)
	}
	if all := strings.Join(lines, "\n"); !strings.Contains(all, "activities_test.go") || !strings.Contains(all, `"msg"="The cleanup handler has failed permanently."`) {
		t.Errorf("got %s", all)
	}
}

// A health check does not wait for a backoff.
func TestOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l callLog
		handlers := registry.Handlers{l.handler(t, "a", []error{errFailed}), l.handler(t, "b", []error{handler.Temporary(errFailed, time.Hour)}), l.handler(t, "c", nil)}
		results := l.caller().once(t.Context(), handlers)
		if len(l.lines) != 3 || time.Since(l.begun) != 0 {
			t.Errorf("got %v, after %s", l.lines, time.Since(l.begun))
		}
		if !errors.Is(results[0].err, errFailed) || !errors.Is(results[1].err, errFailed) || results[2] != (result{id: "c", value: "c's"}) {
			t.Errorf("got %+v", results)
		}
	})
}
