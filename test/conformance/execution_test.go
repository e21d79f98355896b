package conformance

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kopf-go/kopf/internal/handlertest"
	"github.com/kopf-go/kopf/pkg/backoff"
	"github.com/kopf-go/kopf/pkg/lifecycles"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/internal/registry"
	"github.com/kopf-go/kopf/pkg/model/cause"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/selector"
	"github.com/kopf-go/kopf/pkg/reconcile/call"
	"github.com/kopf-go/kopf/pkg/storage"
)

type executionInput struct {
	Behaviour string   `json:"behaviour"`
	Delay     *float64 `json:"delay"`
	Options   struct {
		Errors  string   `json:"errors"`
		Timeout *float64 `json:"timeout"`
		Retries *int     `json:"retries"`
		Backoff *float64 `json:"backoff"`
	} `json:"options"`
	Record *struct {
		Retries           int     `json:"retries"`
		StartedSecondsAgo float64 `json:"startedSecondsAgo"`
	} `json:"record"`
}

type executionExpect struct {
	Called        bool           `json:"called"`
	Delay         float64        `json:"delay"` // null for none, which means immediately
	Error         string         `json:"error"`
	Failure       bool           `json:"failure"`
	Final         bool           `json:"final"`
	RetriesAfter  int            `json:"retriesAfter"`
	RetryArgument *int           `json:"retryArgument"`
	StatusPatch   map[string]any `json:"statusPatch"`
	Success       bool           `json:"success"`
}

func TestExecution(t *testing.T) {
	for _, v := range load[executionInput, executionExpect](t, "execution") {
		t.Run(v.Name, func(t *testing.T) {
			if excepted(t, "execution", v.Name) {
				return
			}
			synctest.Test(t, func(t *testing.T) {
				if got := executed(t, v.Input); !sameExecution(got, v.Expect) {
					t.Errorf("%+v\ngot  %+v\nwant %+v", v.Input, got, v.Expect)
				}
			})
		})
	}
}

// executed makes one attempt, as the engine does.
func executed(t *testing.T, in executionInput) executionExpect {
	var got executionExpect
	d, err := handler.Create(selector.New("kopfexamples"), handlertest.Function(func(_ context.Context, c *handler.Call) error {
		retry := c.Attempt.Retry
		got.Called, got.RetryArgument = true, &retry
		return behave(in, c)
	}), executionOptions(in)...)
	if err != nil {
		t.Fatal(err)
	}
	d.Retries = in.Options.Retries // Kopf also permits 0, where options do not
	progress := call.NewProgress(func(string) *storage.Record { return recordOf(in) })
	state := progress.Include(d.ID, cause.Create, false)
	runner := &call.Runner{
		Cause: &handler.Cause{Reason: cause.Create}, Progress: progress,
		Lifecycle: lifecycles.AllAtOnce, Backoff: backoff.Constant(time.Minute), Slots: call.NewSlots(1, func(object.Key) {}),
		Leave: func() {}, Enter: func() {},
		BeforeAttempt: func(context.Context) error { return nil },
		Interrupted:   func() error { return nil },
		Prepare: func(ctx context.Context, _ *handler.Declaration) (context.Context, handler.CallContext, call.EndSpan) {
			return ctx, handler.CallContext{Body: object.NewBody(nil)}, nil
		},
		AfterAttempt: func(_ context.Context, _ *handler.Declaration, o call.Outcome) {
			got.Final, got.Error = o.Final, errorName(o.Err)
			if !o.Final {
				got.Delay = o.Delay.Seconds()
			}
		},
	}
	if err := runner.Run(t.Context(), registry.Handlers{d}); err != nil {
		t.Fatal(err)
	}
	got.RetriesAfter, got.Success, got.Failure = state.Retries, state.Success, state.Failure
	for _, c := range runner.Edits {
		got.StatusPatch = map[string]any{c.ID: c.Result}
	}
	return got
}

func sameExecution(a, b executionExpect) bool {
	sameRetry := (a.RetryArgument == nil) == (b.RetryArgument == nil) && (a.RetryArgument == nil || *a.RetryArgument == *b.RetryArgument)
	sameStatus := object.Equal(a.StatusPatch, b.StatusPatch)
	a.RetryArgument, b.RetryArgument, a.StatusPatch, b.StatusPatch = nil, nil, nil, nil
	return sameRetry && sameStatus && a.Called == b.Called && a.Delay == b.Delay && a.Error == b.Error && a.Failure == b.Failure &&
		a.Final == b.Final && a.RetriesAfter == b.RetriesAfter && a.Success == b.Success
}

func executionOptions(in executionInput) []handler.ChangeOption {
	modes := map[string]handler.ErrorsMode{"TEMPORARY": handler.ErrorsTemporary, "PERMANENT": handler.ErrorsPermanent, "IGNORED": handler.ErrorsIgnored}
	options := []handler.ChangeOption{handler.ID("fn"), handler.Errors(modes[in.Options.Errors])}
	if in.Options.Timeout != nil {
		options = append(options, handler.Timeout(seconds(*in.Options.Timeout)))
	}
	if in.Options.Backoff != nil {
		options = append(options, handler.Backoff(seconds(*in.Options.Backoff)))
	}
	return options
}

func behave(in executionInput, c *handler.Call) error {
	switch in.Behaviour {
	case "result":
		c.SetResult(map[string]any{"a": 1})
		return nil
	case "ok":
		return nil
	case "temporary":
		delay := 0.0
		if in.Delay != nil {
			delay = *in.Delay
		}
		return handler.Temporary(errors.New("temporary"), seconds(delay))
	case "permanent":
		return handler.Permanent(errors.New("permanent"))
	default:
		return errors.New("arbitrary")
	}
}

func recordOf(in executionInput) *storage.Record {
	if in.Record == nil {
		return nil
	}
	return &storage.Record{
		Started: time.Now().Add(-seconds(in.Record.StartedSecondsAgo)),
		Purpose: cause.Create, Retries: in.Record.Retries,
	}
}

func errorName(err error) string {
	switch err.(type) { //nolint:errorlint // the kind of the outermost error is what is recorded
	case nil:
		return ""
	case *handler.TimeoutError:
		return "HandlerTimeoutError"
	case *handler.RetriesError:
		return "HandlerRetriesError"
	case *handler.TemporaryError:
		return "TemporaryError"
	case *handler.PermanentError:
		return "PermanentError"
	default:
		return "ValueError"
	}
}

func seconds(n float64) time.Duration { return time.Duration(n * float64(time.Second)) }
