package handler_test

import (
	"context"
	"testing"

	"github.com/kopf-go/kopf/pkg/model/handler"
)

type controller struct{ name string }

func (c *controller) create(context.Context, *handler.Change) error { return nil }

func (c controller) update(context.Context, *handler.Change) error { return nil }

type operator struct{ *controller }

type generic[T any] struct{}

func (g *generic[T]) create(context.Context, *handler.Change) error { return nil }

func ofAnything[T any](context.Context, *handler.Change) error { return nil }

// func1 has a name like the names that the compiler gives to function literals.
func func1(context.Context, *handler.Change) error { return nil }

func größe(context.Context, *handler.Change) error { return nil }

func functionLiteral() handler.ChangeFunc {
	return func(context.Context, *handler.Change) error { return nil }
}

func literalOf[T any]() handler.ChangeFunc {
	var captured T
	return func(context.Context, *handler.Change) error { _ = captured; return nil }
}

var literalOfPackage = func(context.Context, *handler.Change) error { return nil }

type creator interface {
	create(context.Context, *handler.Change) error
}

func TestIDDefaultsToTheNameOfTheFunction(t *testing.T) {
	tests := map[string]struct {
		fn      handler.ChangeFunc
		options []handler.UpdateOption
		want    string
	}{
		"a function":                            {doNothing, nil, "doNothing"},
		"a method of a pointer":                 {(&controller{}).create, nil, "create"},
		"a method of a value":                   {controller{}.update, nil, "update"},
		"a method of something embedded":        {operator{&controller{}}.create, nil, "create"},
		"a method of an interface":              {creator(&controller{}).create, nil, "create"},
		"a method of a generic type":            {(&generic[map[string]int]{}).create, nil, "create"},
		"a generic function":                    {ofAnything[string], nil, "ofAnything"},
		"a non-ASCII function name, with an id": {größe, []handler.UpdateOption{handler.ID("size")}, "size"},
		"a function like a literal":             {func1, nil, "func1"},
		"an explicit id":                        {doNothing, []handler.UpdateOption{handler.ID("create_fn")}, "create_fn"},
		"a function and a field":                {doNothing, []handler.UpdateOption{handler.Field("spec.size")}, "doNothing/spec.size"},
		"an explicit id and a field":            {doNothing, []handler.UpdateOption{handler.Field("spec.size"), handler.ID("a")}, "a/spec.size"},
		"a field of several parts":              {doNothing, []handler.UpdateOption{handler.Field("metadata", "labels", "a.dev/b")}, "doNothing/metadata.labels.a.dev/b"},
		"a literal with an explicit id":         {functionLiteral(), []handler.UpdateOption{handler.ID("a")}, "a"},
		"an id in the notation of Python":       {functionLiteral(), []handler.UpdateOption{handler.ID("outer.<locals>.fn")}, "outer.<locals>.fn"},
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
	tests := map[string]handler.ChangeFunc{
		"in a function":             functionLiteral(),
		"in a generic function":     literalOf[string](),
		"in a variable":             literalOfPackage,
		"in a literal":              func() handler.ChangeFunc { return func(context.Context, *handler.Change) error { return nil } }(),
		"in the test itself":        func(context.Context, *handler.Change) error { return nil },
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

func nested() func() handler.ChangeFunc {
	return func() handler.ChangeFunc {
		return func(context.Context, *handler.Change) error { return nil }
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
		first, second handler.ChangeFunc
		options       []handler.CreateOption
		same          bool
	}{
		"one function":                           {doNothing, doNothing, nil, true},
		"one generic function":                   {ofAnything[int], ofAnything[int], nil, true},
		"a method of one object":                 {one.create, one.create, nil, true},
		"a method of one embedded object":        {operator{&one}.create, operator{&one}.create, nil, true},
		"a method of one object, and its own":    {operator{&one}.create, one.create, nil, true},
		"a stored method value":                  {value, value, nil, true},
		"a stored literal":                       {kept, kept, []handler.CreateOption{a}, true},
		"two functions with one id":              {doNothing, func1, []handler.CreateOption{a}, false},
		"a method of two objects":                {one.create, two.create, nil, false},
		"a method of two values":                 {one.update, two.update, nil, false},
		"closures over different variables":      {logging("x"), logging("y"), []handler.CreateOption{a}, false},
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

func logging(text string) handler.ChangeFunc {
	return func(_ context.Context, c *handler.Change) error { c.Logger().Info(text); return nil }
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
