package conformance

import (
	"context"
	"testing"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/internal/handlertest"
	"github.com/kopf-go/kopf/internal/registry"
	"github.com/kopf-go/kopf/pkg/model/cause"
	"github.com/kopf-go/kopf/pkg/model/diff"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/selector"
)

type filtersInput struct {
	Decorator string         `json:"decorator"`
	Options   map[string]any `json:"options"`
	Body      map[string]any `json:"body"`
	Old       map[string]any `json:"old"`
	New       map[string]any `json:"new"`
	Reason    cause.Reason   `json:"reason"`
	Initial   bool           `json:"initial"`
}

type filtersExpect struct {
	Error          bool   `json:"error"`
	ID             string `json:"id"`
	InScope        bool   `json:"inScope"`
	NeedsFinalizer bool   `json:"needsFinalizer"`
	Selected       bool   `json:"selected"`
}

func TestFilters(t *testing.T) {
	for _, v := range load[filtersInput, filtersExpect](t, "filters") {
		t.Run(v.Name, func(t *testing.T) {
			if excepted(t, "filters", v.Name) {
				return
			}
			d, err := declared(v.Input)
			if err != nil || v.Expect.Error {
				if (err != nil) != v.Expect.Error {
					t.Errorf("declaration: got error %v, want one: %v", err, v.Expect.Error)
				}
				return
			}
			handlers, occasion := registry.Handlers{d}, occasionOf(v.Input)
			got := filtersExpect{
				ID:             d.ID,
				InScope:        handlers.InScope(occasion),
				NeedsFinalizer: handlers.HoldDeletion(occasion),
				Selected:       len(handlers.Selected(occasion)) == 1,
			}
			if got != v.Expect {
				t.Errorf("%s %v, reason %s\nbody %v\nold %v\nnew %v\ngot  %+v\nwant %+v", v.Input.Decorator, v.Input.Options,
					v.Input.Reason, v.Input.Body, v.Input.Old, v.Input.New, got, v.Expect)
			}
		})
	}
}

func occasionOf(in filtersInput) *handler.Cause {
	return &handler.Cause{
		CallContext: handler.CallContext{Body: object.NewBody(in.Body)},
		Reason:      in.Reason, Initial: in.Initial,
		Old: in.Old, New: in.New, Diff: diff.Compute(in.Old, in.New, diff.Full),
	}
}

// declared returns the declaration that the vector describes.
func declared(in filtersInput) (*handler.Declaration, error) {
	fn := handlertest.Function(func(context.Context, *handler.Call) error { return nil })
	sel, common := selector.New("kopfexamples"), anyOptions(in.Options)
	switch in.Decorator {
	case "create":
		return handler.Create(sel, fn, optionsOf[handler.ChangeOption](common, fieldOptions(in.Options))...)
	case "update":
		return handler.Update(sel, fn, append(optionsOf[handler.ChangeOption](common, fieldOptions(in.Options)), changeOptions(in.Options)...)...)
	case "field":
		options := append(optionsOf[handler.ChangeOption](common, valueOption(in.Options)), changeOptions(in.Options)...)
		return handler.ForField(sel, []string{in.Options["field"].(string)}, fn, options...)
	case "delete":
		options := optionsOf[handler.ChangeOption](common, fieldOptions(in.Options))
		if in.Options["optional"] == true {
			options = append(options, handler.Optional())
		}
		return handler.Delete(sel, fn, options...)
	default:
		options := optionsOf[handler.ChangeOption](common, fieldOptions(in.Options))
		if in.Options["deleted"] == true {
			options = append(options, handler.Deleted())
		}
		return handler.Resume(sel, fn, options...)
	}
}

func optionsOf[O any](common []handler.Option, field []handler.Option) []O {
	var options []O
	for _, o := range common {
		options = append(options, any(o).(O))
	}
	for _, o := range field {
		options = append(options, any(o).(O))
	}
	return options
}

func anyOptions(in map[string]any) []handler.Option {
	options := []handler.Option{handler.ID("fn")}
	if labels, ok := in["labels"].(map[string]any); ok {
		options = append(options, handler.Labels(matchers(labels)))
	}
	if annotations, ok := in["annotations"].(map[string]any); ok {
		options = append(options, handler.Annotations(matchers(annotations)))
	}
	return options
}

func fieldOptions(in map[string]any) []handler.Option {
	options := valueOption(in)
	if field, ok := in["field"].(string); ok {
		options = append(options, handler.Field(field))
	}
	return options
}

func valueOption(in map[string]any) []handler.Option {
	if value, ok := in["value"]; ok && value != nil {
		return []handler.Option{handler.Value(matcherOf(value))}
	}
	return nil
}

func changeOptions(in map[string]any) []handler.ChangeOption {
	var options []handler.ChangeOption
	if value, ok := in["old"]; ok && value != nil {
		options = append(options, handler.ValueBefore(matcherOf(value)))
	}
	if value, ok := in["new"]; ok && value != nil {
		options = append(options, handler.ValueAfter(matcherOf(value)))
	}
	return options
}

func matchers(values map[string]any) map[string]handler.Matcher {
	filters := map[string]handler.Matcher{}
	for key, value := range values {
		filters[key] = matcherOf(value)
	}
	return filters
}

func matcherOf(value any) handler.Matcher {
	switch value {
	case "*PRESENT*":
		return handler.Present()
	case "*ABSENT*":
		return handler.Absent()
	default:
		return handler.Equal(value)
	}
}
