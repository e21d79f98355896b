package virtual

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/kopftest"
)

// The story of a change of a database: each step follows the success of the one before, and the last ones follow a
// failure of any of them.
func TestHandlersAreCalledInTheirOrder(t *testing.T) {
	failed, later := kopf.Permanent(errors.New("broken")), kopf.Temporary(errors.New("not yet"), time.Minute)
	steps := []string{"backup", "down", "upgrade"}
	tests := map[string]struct {
		fails  map[string][]error // of the attempts of a handler
		calls  string
		writes int // the end of each step is stored before the next one
	}{
		"all succeed":             {nil, "backup down upgrade up", 4},
		"the first one fails":     {map[string][]error{"backup": {failed}}, "backup restore up-again", 3},
		"the last one fails":      {map[string][]error{"upgrade": {failed}}, "backup down upgrade restore up-again", 5},
		"one is retried":          {map[string][]error{"down": {later, later}}, "backup down down down upgrade up", 6},
		"the way back fails, too": {map[string][]error{"down": {failed}, "restore": {failed}}, "backup down restore", 3},
		"the last step fails":     {map[string][]error{"up": {failed}}, "backup down upgrade up", 4},
	}
	declare := func(called func(c *kopf.Change, id string) error, add func(id string, fn func(context.Context, *kopf.Change) error, options ...kopf.ChangeOption)) {
		step := func(id string) func(context.Context, *kopf.Change) error {
			return func(_ context.Context, c *kopf.Change) error { return called(c, id) }
		}
		add("up-again", step("up-again"), kopf.After("restore"))
		add("restore", step("restore"), kopf.AfterFailure(steps...))
		add("up", step("up"), kopf.After("upgrade"))
		add("upgrade", step("upgrade"), kopf.After("down"))
		add("down", step("down"), kopf.After("backup"))
		add("backup", step("backup"))
	}
	for name, test := range tests {
		for _, kind := range []string{"handlers", "sub-handlers"} {
			t.Run(name+"/"+kind, func(t *testing.T) {
				var calls []string
				called := func(c *kopf.Change, id string) error {
					calls = append(calls, id)
					if c.Retry() < len(test.fails[id]) {
						return test.fails[id][c.Retry()]
					}
					return nil
				}
				withOperator(t, func(r *kopf.Registry) {
					if kind == "handlers" {
						declare(called, func(id string, fn func(context.Context, *kopf.Change) error, options ...kopf.ChangeOption) {
							r.OnCreate(examples, fn, append(options, kopf.ID(id))...)
						})
						return
					}
					r.OnCreate(examples, func(_ context.Context, c *kopf.Change) error {
						declare(called, func(id string, fn func(context.Context, *kopf.Change) error, options ...kopf.ChangeOption) {
							c.Subhandler(id, fn, options...)
						})
						return nil
					}, kopf.ID("story"))
				}, func(t *testing.T, h *kopftest.Harness) {
					h.Create(newExample())
					h.Advance(time.Hour)
					if got := strings.Join(calls, " "); got != test.calls {
						t.Errorf("got %s, want %s", got, test.calls)
					}
					if got := len(h.Writes()); kind == "handlers" && got != test.writes {
						t.Errorf("got %d writes, want %d: %v", got, test.writes, h.Writes())
					}
				})
			})
		}
	}
}

// A handler of AfterFailure knows what has failed, also in its second attempt after a restart.
func TestHandlersKnowTheFailuresThatTheyFollow(t *testing.T) {
	for _, kind := range []string{"handlers", "sub-handlers"} {
		t.Run(kind, func(t *testing.T) {
			var seen []map[string]string
			broken := func(context.Context, *kopf.Change) error { return kopf.Permanent(errors.New("no space is left")) }
			retried := func(_ context.Context, c *kopf.Change) error {
				seen = append(seen, c.Failures())
				if c.Retry() == 0 {
					return kopf.Temporary(errors.New("not yet"), time.Minute)
				}
				return nil
			}
			withOperator(t, func(r *kopf.Registry) {
				if kind == "handlers" {
					r.OnCreate(examples, retried, kopf.ID("check"))
					r.OnCreate(examples, broken, kopf.ID("backup"))
					r.OnCreate(examples, retried, kopf.ID("restore"), kopf.AfterFailure("check", "backup"))
					return
				}
				r.OnCreate(examples, func(_ context.Context, c *kopf.Change) error {
					c.Subhandler("check", retried)
					c.Subhandler("backup", broken)
					c.Subhandler("restore", retried, kopf.AfterFailure("check", "backup"))
					return nil
				}, kopf.ID("story"))
			}, func(t *testing.T, h *kopftest.Harness) {
				h.Create(newExample())
				h.Advance(30 * time.Second)
				h.Crash()
				h.Advance(time.Hour)
				failures := map[string]string{"backup": "no space is left"}
				if want := []map[string]string{nil, failures, nil, failures}; !reflect.DeepEqual(seen, want) {
					t.Errorf("got %v, want %v", seen, want)
				}
			})
		})
	}
}

// A handler that is not called for a change is not waited for, and cannot fail.
func TestHandlersWaitForThoseThatTakePart(t *testing.T) {
	var calls []string
	call := func(id string) func(context.Context, *kopf.Change) error {
		return func(_ context.Context, c *kopf.Change) error {
			calls = append(calls, fmt.Sprintf("%s %s", c.Reason(), id))
			return nil
		}
	}
	withOperator(t, func(r *kopf.Registry) {
		r.OnUpdate(examples, call("second"), kopf.ID("second"), kopf.After("first"))
		r.OnUpdate(examples, call("rescue"), kopf.ID("rescue"), kopf.AfterFailure("first"))
		r.OnCreate(examples, call("first"), kopf.ID("first"))
		r.OnUpdate(examples, call("first"), kopf.ID("first"), kopf.Field("spec.color"))
	}, func(t *testing.T, h *kopftest.Harness) {
		one := newExample()
		h.Create(one)
		h.Settle()
		h.Patch(one, `{"spec":{"size":7}}`)
		h.Advance(time.Minute)
		if want := []string{"create first", "update second"}; !slices.Equal(calls, want) {
			t.Errorf("got %v", calls)
		}
	})
}

// The declarations do not say which resources a selector means, so the log does.
func TestAnOrderAmongTheHandlersOfSeveralResourcesIsReported(t *testing.T) {
	nothing := func(context.Context, *kopf.Change) error { return nil }
	withOperator(t, func(r *kopf.Registry) {
		r.OnCreate(kopf.Resource("configmaps"), nothing, kopf.ID("first"))
		r.OnCreate(examples, nothing, kopf.ID("second"), kopf.After("first"))
	}, func(t *testing.T, h *kopftest.Harness) {
		lines := linesWith(h, "Handlers wait for handlers that are not called for this resource; they do not wait there.")
		if len(lines) != 1 || !strings.Contains(lines[0].Err.Error(), `the handler "second" waits for "first": no handler of changes has this id`) {
			t.Errorf("got %v", lines)
		}
		h.Create(newExample())
		h.Settle()
		if calls := h.Calls("second"); len(calls) != 1 {
			t.Errorf("got %v", calls)
		}
	})
}

// Ids of sub-handlers are checked when they are registered.
func TestOrderOfSubhandlersIsChecked(t *testing.T) {
	withOperator(t, func(r *kopf.Registry) {
		r.OnCreate(examples, func(_ context.Context, c *kopf.Change) error {
			nothing := func(context.Context, *kopf.Change) error { return nil }
			c.Subhandler("backup", nothing)
			c.Subhandler("down", nothing, kopf.After("bakup"))
			return nil
		}, kopf.ID("story"))
	}, func(t *testing.T, h *kopftest.Harness) {
		h.Create(newExample())
		h.Settle()
		want := `the handler "story/down" waits for "story/bakup": no handler of changes has this id; did you mean story/backup?`
		if events := h.Events(); len(events) == 0 || !strings.Contains(events[0].Message, want) {
			t.Errorf("got %v", events)
		}
		if calls := h.Calls("story/backup"); len(calls) > 0 {
			t.Errorf("got %v", calls)
		}
	})
}
