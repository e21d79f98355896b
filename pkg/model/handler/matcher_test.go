package handler_test

import (
	"slices"
	"testing"

	"github.com/kopf-go/kopf/pkg/model/cause"
	"github.com/kopf-go/kopf/pkg/model/handler"
	"github.com/kopf-go/kopf/pkg/model/object"
)

func TestMatchersAcceptOrRejectValues(t *testing.T) {
	yes := handler.MatchFunc(func(object.Value, handler.Arguments) bool { return true })
	long := handler.MatchFunc(func(v object.Value, _ handler.Arguments) bool { text, _ := v.Text(); return len(text) > 2 })
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
		"not":                               {handler.Not(long), "ab", true},
		"not not":                           {handler.Not(handler.Not(long)), "abc", true},
		"all of nothing":                    {handler.All(none...), "a", true},
		"any of nothing":                    {handler.Any(none...), "a", false},
		"none of nothing":                   {handler.None(none...), "a", true},
		"a value known by its hash":         {handler.Equal("a"), hashed("a"), true},
		"another value and a hash":          {handler.Equal("b"), hashed("a"), false},
		"the presence of a hash":            {handler.Present(), hashed("a"), true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := test.matcher.Matches(object.NewValue(test.value), nil); got != test.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

type hashed string

func (h hashed) EqualTo(value any) bool { return object.Equal(string(h), value) }

func TestPredicatesAreCombined(t *testing.T) {
	yes := func(handler.Arguments) bool { return true }
	no := func(handler.Arguments) bool { return false }
	sure, never := yes, no
	tests := map[string]struct {
		predicate func(handler.Arguments) bool
		want      bool
	}{
		"all":       {handler.All(yes, sure), true},
		"not all":   {handler.All(yes, no), false},
		"any":       {handler.Any(yes, no), true},
		"not any":   {handler.Any(no, never), false},
		"none":      {handler.None(no, never), true},
		"not none":  {handler.None(yes, no), false},
		"not":       {handler.Not(no), true},
		"negated":   {handler.Not(yes), false},
		"all mixed": {handler.All(handler.Any(no, yes), handler.Not(no)), true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := test.predicate(nil); got != test.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

// Later conditions may depend on earlier ones.
func TestConditionsAreCheckedUntilTheResultIsCertain(t *testing.T) {
	var asked []int
	say := func(number int, answer bool) func(handler.Arguments) bool {
		return func(handler.Arguments) bool { asked = append(asked, number); return answer }
	}
	tests := map[string]struct {
		predicate func(handler.Arguments) bool
		want      []int
	}{
		"all, until one rejects":    {handler.All(say(1, true), say(2, false), say(3, true)), []int{1, 2}},
		"any, until one accepts":    {handler.Any(say(1, false), say(2, true), say(3, false)), []int{1, 2}},
		"none, until one accepts":   {handler.None(say(1, false), say(2, true), say(3, false)), []int{1, 2}},
		"all, as none is decisive":  {handler.All(say(1, true), say(2, true)), []int{1, 2}},
		"none, as none is decisive": {handler.None(say(1, false), say(2, false)), []int{1, 2}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			asked = nil
			test.predicate(nil)
			if !slices.Equal(asked, test.want) {
				t.Errorf("got %v, want %v", asked, test.want)
			}
		})
	}
}

// A callback gets the object and everything else that the handler gets.
func TestCallbacksGetTheHandlersArguments(t *testing.T) {
	before, after := m{"spec": m{"size": int64(1)}}, m{"metadata": m{"name": "one"}, "spec": m{"size": int64(2)}}
	asked := 0
	d, err := handler.Update(kex, change(doNothing), handler.Field("spec.size"), handler.Param("p"),
		handler.Value(handler.MatchFunc(func(v object.Value, a handler.Arguments) bool {
			asked++
			return v.Equals(2) && a.Name() == "one"
		})),
		handler.When(func(a handler.Arguments) bool {
			asked++
			return a.Param() == "p" && a.Reason() == cause.Update && a.Old().Equals(1) && a.New().Equals(2) && len(a.Diff()) == 1
		}))
	if !declared(t, d, err).Selects(occasion(cause.Update, before, after)) || asked != 2 {
		t.Errorf("the callbacks were called %d times", asked)
	}
	watching, err := handler.Watch(kex, handler.Function{Event: watchNothing}, handler.When(func(a handler.Arguments) bool {
		return a.Reason() == "" && !a.Old().Exists() && a.New().Exists() && a.Diff() == nil
	}))
	if !declared(t, watching, err).InScope(occasion("", nil, after)) {
		t.Error("an event filter got other arguments")
	}
}
