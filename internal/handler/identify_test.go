package handler_test

import (
	"context"
	"testing"

	"github.com/kopf-go/kopf/internal/handler"
)

type controller struct{ name string }

func (c *controller) create(context.Context, *handler.Call) error { return nil }

func (c controller) update(context.Context, *handler.Call) error { return nil }

type operator struct{ *controller }

type generic[T any] struct{}

func (g *generic[T]) create(context.Context, *handler.Call) error { return nil }

func ofAnything[T any](context.Context, *handler.Call) error { return nil }

// func1 has a name like the names that the compiler gives to function literals.
func func1(context.Context, *handler.Call) error { return nil }

func größe(context.Context, *handler.Call) error { return nil }

func functionLiteral() func(context.Context, *handler.Call) error {
	return func(context.Context, *handler.Call) error { return nil }
}

func literalOf[T any]() func(context.Context, *handler.Call) error {
	var captured T
	return func(context.Context, *handler.Call) error { _ = captured; return nil }
}

var literalOfPackage = func(context.Context, *handler.Call) error { return nil }

type creator interface {
	create(context.Context, *handler.Call) error
}

func TestIDDefaultsToTheNameOfTheFunction(t *testing.T) {
	tests := map[string]struct {
		fn      func(context.Context, *handler.Call) error
		options []handler.ChangeOption
		want    string
	}{
		"a function":                            {doNothing, nil, "doNothing"},
		"a method of a pointer":                 {(&controller{}).create, nil, "create"},
		"a method of a value":                   {controller{}.update, nil, "update"},
		"a method of something embedded":        {operator{&controller{}}.create, nil, "create"},
		"a method of an interface":              {creator(&controller{}).create, nil, "create"},
		"a method of a generic type":            {(&generic[map[string]int]{}).create, nil, "create"},
		"a generic function":                    {ofAnything[string], nil, "ofAnything"},
		"a non-ASCII function name, with an id": {größe, []handler.ChangeOption{handler.ID("size")}, "size"},
		"a function like a literal":             {func1, nil, "func1"},
		"an explicit id":                        {doNothing, []handler.ChangeOption{handler.ID("create_fn")}, "create_fn"},
		"a function and a field":                {doNothing, []handler.ChangeOption{handler.Field("spec.size")}, "doNothing/spec.size"},
		"an explicit id and a field":            {doNothing, []handler.ChangeOption{handler.Field("spec.size"), handler.ID("a")}, "a/spec.size"},
		"a field of several parts":              {doNothing, []handler.ChangeOption{handler.Field("metadata", "labels", "a.dev/b")}, "doNothing/metadata.labels.a.dev/b"},
		"a literal with an explicit id":         {functionLiteral(), []handler.ChangeOption{handler.ID("a")}, "a"},
		"an id in the notation of Python":       {functionLiteral(), []handler.ChangeOption{handler.ID("outer.<locals>.fn")}, "outer.<locals>.fn"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			d, err := handler.Update(kex, change(test.fn), test.options...)
			if got := declared(t, d, err).ID; got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestFunctionLiteralNeedsAnID(t *testing.T) {
	tests := map[string]func(context.Context, *handler.Call) error{
		"in a function":         functionLiteral(),
		"in a generic function": literalOf[string](),
		"in a variable":         literalOfPackage,
		"in a literal": func() func(context.Context, *handler.Call) error {
			return func(context.Context, *handler.Call) error { return nil }
		}(),
		"in the test itself":        func(context.Context, *handler.Call) error { return nil },
		"in a function of literals": nested()(),
	}
	for name, fn := range tests {
		t.Run(name, func(t *testing.T) {
			d, err := handler.Create(kex, change(fn))
			refused(t, d, err, `a function literal has no name to use as the id of the handler: add kopf.ID("my_handler")`)
		})
	}
}

func TestFunctionWithNonASCIINameNeedsAnID(t *testing.T) {
	d, err := handler.Create(kex, change(größe))
	refused(t, d, err, `its progress cannot be stored under the id "größe"`)
}

func nested() func() func(context.Context, *handler.Call) error {
	return func() func(context.Context, *handler.Call) error {
		return func(context.Context, *handler.Call) error { return nil }
	}
}

// One function can be declared for several causes. This differs from two functions with the
// same id.
func TestDeclarationsOfOneFunctionAreOneHandler(t *testing.T) {
	var one, two controller
	one.name, two.name = "one", "two"
	kept := functionLiteral()
	value := one.update
	a := handler.ID("a")
	tests := map[string]struct {
		first, second func(context.Context, *handler.Call) error
		options       []handler.ChangeOption
		same          bool
	}{
		"one function":                           {doNothing, doNothing, nil, true},
		"one generic function":                   {ofAnything[int], ofAnything[int], nil, true},
		"a method of one object":                 {one.create, one.create, nil, true},
		"a method of one embedded object":        {operator{&one}.create, operator{&one}.create, nil, true},
		"a method of one object, and its own":    {operator{&one}.create, one.create, nil, true},
		"a stored method value":                  {value, value, nil, true},
		"a stored literal":                       {kept, kept, []handler.ChangeOption{a}, true},
		"two functions with one id":              {doNothing, func1, []handler.ChangeOption{a}, false},
		"a method of two objects":                {one.create, two.create, nil, false},
		"a method of two values":                 {one.update, two.update, nil, false},
		"closures over different variables":      {logging("x"), logging("y"), []handler.ChangeOption{a}, false},
		"a generic function for different types": {ofAnything[int], ofAnything[string], nil, false},
		"a generic method of different types":    {(&generic[int]{}).create, (&generic[string]{}).create, nil, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			d1, err := handler.Create(kex, change(test.first), test.options...)
			first := declared(t, d1, err)
			d2, err := handler.Create(kex, change(test.second), test.options...)
			second := declared(t, d2, err)
			if first.IsSame(second) != test.same || second.IsSame(first) != test.same {
				t.Errorf("got %v", first.IsSame(second))
			}
			if conflict := second.CheckConflict(first); (conflict == nil) != test.same {
				t.Errorf("got the conflict %v", conflict)
			}
		})
	}
}

func logging(text string) func(context.Context, *handler.Call) error {
	return func(_ context.Context, c *handler.Call) error { c.Context.Logger.Info(text); return nil }
}

func TestOneFunctionWithTwoIDsIsTwoHandlers(t *testing.T) {
	d1, err := handler.Create(kex, change(doNothing), handler.ID("a"))
	first := declared(t, d1, err)
	d2, err := handler.Create(kex, change(doNothing), handler.ID("b"))
	second := declared(t, d2, err)
	if first.IsSame(second) || first.CheckConflict(second) != nil {
		t.Errorf("got %v, %v", first.IsSame(second), first.CheckConflict(second))
	}
}
