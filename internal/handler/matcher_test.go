package handler_test

import (
	"testing"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/pkg/model/cause"
	"github.com/kopf-go/kopf/pkg/model/object"
)

func TestMatchersAcceptOrRejectValues(t *testing.T) {
	yes := matchFuncOf(func(object.Value, *handler.Call) bool { return true })
	long := matchFuncOf(func(v object.Value, _ *handler.Call) bool { text, _ := v.Text(); return len(text) > 2 })
	none := []handler.Matcher{}
	tests := map[string]struct {
		matcher handler.Matcher
		value   any
		want    bool
	}{
		"the zero matcher":                  {handler.Matcher{}, nil, true},
		"an equal text":                     {handler.Equal("a"), "a", true},
		"another text":                      {handler.Equal("a"), "b", false},
		"an equal number of another type":   {handler.Equal(1), 1.0, true},
		"a number and a text":               {handler.Equal(1), "1", false},
		"an equal struct":                   {handler.Equal(struct{ A []int }{[]int{1}}), m{"A": []any{int64(1)}}, true},
		"equal to nil":                      {handler.Equal(nil), nil, true},
		"an empty text and an absent value": {handler.Equal(""), nil, false},
		"present":                           {handler.Present(), "", true},
		"not present":                       {handler.Present(), nil, false},
		"absent":                            {handler.Absent(), nil, true},
		"not absent":                        {handler.Absent(), "", false},
		"a callback accepts":                {long, "abc", true},
		"a callback rejects":                {long, "ab", false},
		"a callback gets absent values":     {yes, nil, true},
		"all accept":                        {handler.All(handler.Present(), long), "abc", true},
		"not all accept":                    {handler.All(handler.Present(), long), "ab", false},
		"any accepts":                       {handler.Any(handler.Equal("ab"), long), "ab", true},
		"not any accepts":                   {handler.Any(handler.Equal("b"), long), "ab", false},
		"none accepts":                      {handler.None(handler.Equal("b"), long), "ab", true},
		"not none accepts":                  {handler.None(handler.Equal("ab"), long), "ab", false},
		"not":                               {handler.None(long), "ab", true},
		"not not":                           {handler.None(handler.None(long)), "abc", true},
		"all of nothing":                    {handler.All(none...), "a", true},
		"any of nothing":                    {handler.Any(none...), "a", false},
		"none of nothing":                   {handler.None(none...), "a", true},
		"a value known by its hash":         {handler.Equal("a"), hashed("a"), true},
		"another value and a hash":          {handler.Equal("b"), hashed("a"), false},
		"the presence of a hash":            {handler.Present(), hashed("a"), true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := test.matcher.Matches(object.NewValue(test.value)); got != test.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

type hashed string

func (h hashed) EqualTo(value any) bool { return object.Equal(string(h), value) }

// A callback gets the object and everything else that the handler gets.
func TestCallbacksGetTheHandlersArguments(t *testing.T) {
	before, after := m{"spec": m{"size": int64(1)}}, m{"metadata": m{"name": "one"}, "spec": m{"size": int64(2)}}
	asked := 0
	d, err := handler.Update(kex, change(doNothing), handler.Field("spec.size"), handler.Param("p"),
		handler.Value(matchFuncOf(func(v object.Value, a *handler.Call) bool {
			asked++
			return v.Equals(2) && a.Name() == "one"
		})),
		whenOf(func(a *handler.Call) bool {
			asked++
			return a.Param() == "p" && a.Reason() == cause.Update && a.Transition().Old.Equals(1) && a.Transition().New.Equals(2) && len(a.Transition().Diff) == 1
		}))
	if !declared(t, d, err).Selects(occasion(cause.Update, before, after)) || asked != 2 {
		t.Errorf("the callbacks were called %d times", asked)
	}
	watching, err := handler.Watch(kex, functionOf(watchNothing), whenOf(func(a *handler.Call) bool {
		return a.Reason() == "" && !a.Transition().Old.Exists() && a.Transition().New.Exists() && a.Transition().Diff == nil
	}))
	if !declared(t, watching, err).InScope(occasion("", nil, after)) {
		t.Error("an event filter got other arguments")
	}
}
