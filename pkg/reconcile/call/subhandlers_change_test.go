package call_test

import (
	"context"
	"slices"
	"testing"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/internal/handlertest"
	"github.com/kopf-go/kopf/internal/registry"
	"github.com/kopf-go/kopf/pkg/lifecycles"
	"github.com/kopf-go/kopf/pkg/model/cause"
	"github.com/kopf-go/kopf/pkg/model/diff"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/selector"
)

// changed runs a field handler of spec for an update of spec.size, and returns what the
// sub-handlers that it registers have noted.
func changed(t *testing.T, register func(c *handler.Call, note func(context.Context, *handler.Call) error)) []string {
	t.Helper()
	var noted []string
	note := func(_ context.Context, c *handler.Call) error { //nolint:unparam // it is a handler
		noted = append(noted, c.Transition().Old.String()+" → "+c.Transition().New.String()+" "+c.Transition().Diff.String())
		return nil
	}
	d, err := handler.ForField(selector.New("kopfexamples"), []string{"spec"},
		handlertest.Function(func(_ context.Context, c *handler.Call) error { register(c, note); return nil }), handler.ID("a"))
	if err != nil {
		t.Fatal(err)
	}
	before := object.Essence{"spec": map[string]any{"size": int64(1), "color": "red"}, "kind": "K"}
	after := object.Essence{"spec": map[string]any{"size": int64(2), "color": "red"}, "kind": "L"}
	w := &world{t: t, reason: cause.Update}
	runner, _ := w.begin(registry.Handlers{d})
	runner.Lifecycle = lifecycles.AllAtOnce
	runner.Cause = &handler.Cause{
		CallContext: handler.CallContext{Body: object.NewBody(after)}, Reason: cause.Update,
		Old: before, New: after, Diff: diff.Compute(before, after, diff.Full),
	}
	if err := runner.Run(t.Context(), registry.Handlers{d}); err != nil {
		t.Fatal(err)
	}
	return noted
}

func TestSubhandlersSeeTheChangeOfTheirParentsField(t *testing.T) {
	noted := changed(t, func(c *handler.Call, note func(context.Context, *handler.Call) error) {
		handlertest.Subhandler(c, "whole", note)
		handlertest.Subhandler(c, "nested", func(_ context.Context, c *handler.Call) error { handlertest.Subhandler(c, "again", note); return nil })
		handlertest.Subhandler(c, "size", note, handler.Field("spec.size"))
	})
	of := "map[color:red size:1] → map[color:red size:2] change size: 1 -> 2"
	if want := []string{of, of, "1 → 2 change: 1 -> 2"}; !slices.Equal(noted, want) {
		t.Errorf("got %q, want %q", noted, want)
	}
}

func TestSubhandlersAreFilteredByFields(t *testing.T) {
	tests := map[string]struct {
		options []handler.ChangeOption
		called  bool
	}{
		"the field is there":          {[]handler.ChangeOption{handler.Field("spec.color")}, true},
		"the field is absent":         {[]handler.ChangeOption{handler.Field("spec.other")}, false},
		"the value fits":              {[]handler.ChangeOption{handler.Field("spec.size"), handler.Value(handler.Equal(1))}, true},
		"the value does not fit":      {[]handler.ChangeOption{handler.Field("spec.size"), handler.Value(handler.Equal(3))}, false},
		"the former value fits":       {[]handler.ChangeOption{handler.Field("spec.size"), handler.ValueBefore(handler.Equal(1))}, true},
		"the former value is another": {[]handler.ChangeOption{handler.Field("spec.size"), handler.ValueBefore(handler.Equal(2))}, false},
		"the new value fits":          {[]handler.ChangeOption{handler.Field("spec.size"), handler.ValueAfter(handler.Equal(2))}, true},
		"the new value is another":    {[]handler.ChangeOption{handler.Field("spec.size"), handler.ValueAfter(handler.Equal(1))}, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			noted := changed(t, func(c *handler.Call, note func(context.Context, *handler.Call) error) {
				handlertest.Subhandler(c, "b", note, test.options...)
			})
			if (len(noted) == 1) != test.called {
				t.Errorf("got %q", noted)
			}
		})
	}
}
