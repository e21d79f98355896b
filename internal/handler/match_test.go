package handler_test

import (
	"testing"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/pkg/model/cause"
	"github.com/kopf-go/kopf/pkg/model/object"
)

func update(t *testing.T, options ...handler.ChangeOption) *handler.Declaration {
	t.Helper()
	d, err := handler.Update(kex, change(doNothing), options...)
	return declared(t, d, err)
}

func TestReasonsSelectHandlers(t *testing.T) {
	kinds := map[string]func(...handler.ChangeOption) (*handler.Declaration, error){
		"create": func(...handler.ChangeOption) (*handler.Declaration, error) {
			return handler.Create(kex, change(doNothing))
		},
		"update": func(...handler.ChangeOption) (*handler.Declaration, error) {
			return handler.Update(kex, change(doNothing))
		},
		"delete": func(...handler.ChangeOption) (*handler.Declaration, error) {
			return handler.Delete(kex, change(doNothing))
		},
		"resume": func(options ...handler.ChangeOption) (*handler.Declaration, error) {
			return handler.Resume(kex, change(doNothing), options...)
		},
		"resume, including deletions": func(...handler.ChangeOption) (*handler.Declaration, error) {
			return handler.Resume(kex, change(doNothing), handler.Deleted())
		},
		"field": func(...handler.ChangeOption) (*handler.Declaration, error) {
			return handler.ForField(kex, []string{"spec"}, change(doNothing))
		},
	}
	tests := map[string]struct {
		reason  cause.Reason
		initial bool
		want    []string
	}{
		"a creation":                      {cause.Create, false, []string{"create", "field"}},
		"an update":                       {cause.Update, false, []string{"update", "field"}},
		"an update while it was down":     {cause.Update, true, []string{"update", "field", "resume", "resume, including deletions"}},
		"a deletion":                      {cause.Delete, false, []string{"delete"}},
		"a deletion while it was down":    {cause.Delete, true, []string{"delete", "resume, including deletions"}},
		"an unchanged object after start": {cause.Resume, true, []string{"field", "resume", "resume, including deletions"}},
		"an unchanged object seen again":  {cause.NoOp, false, []string{"field"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			o := occasion(test.reason, m{"spec": "old"}, m{"spec": "new"})
			o.Initial = test.initial
			for kind, declare := range kinds {
				d, err := declare()
				want := false
				for _, one := range test.want {
					want = want || one == kind
				}
				if got := declared(t, d, err).Selects(o); got != want {
					t.Errorf("the %s handler: got %v, want %v", kind, got, want)
				}
			}
		})
	}
}

func TestMetadataFilters(t *testing.T) {
	type filters = map[string]handler.Matcher
	object := m{"metadata": m{
		"labels": m{"app": "db", "tier": "back"}, "annotations": m{"note": "x", "a.dev/b": ""},
	}}
	tests := map[string]struct {
		options []handler.ChangeOption
		want    bool
	}{
		"none":                            {nil, true},
		"a label that matches":            {[]handler.ChangeOption{handler.Labels(filters{"app": handler.Equal("db")})}, true},
		"a label that does not match":     {[]handler.ChangeOption{handler.Labels(filters{"app": handler.Equal("web")})}, false},
		"one label that does not match":   {[]handler.ChangeOption{handler.Labels(filters{"app": handler.Equal("db"), "tier": handler.Absent()})}, false},
		"a label that is absent":          {[]handler.ChangeOption{handler.Labels(filters{"zone": handler.Absent()})}, true},
		"an annotation that exists":       {[]handler.ChangeOption{handler.Annotations(filters{"a.dev/b": handler.Present()})}, true},
		"an annotation that is absent":    {[]handler.ChangeOption{handler.Annotations(filters{"a.dev/c": handler.Present()})}, false},
		"labels and annotations":          {[]handler.ChangeOption{handler.Labels(filters{"app": handler.Present()}), handler.Annotations(filters{"note": handler.Equal("y")})}, false},
		"labels of two options":           {[]handler.ChangeOption{handler.Labels(filters{"app": handler.Present()}), handler.Labels(filters{"tier": handler.Absent()})}, false},
		"one label in two options":        {[]handler.ChangeOption{handler.Labels(filters{"app": handler.Equal("web")}), handler.Labels(filters{"app": handler.Present()})}, false},
		"the same in another order":       {[]handler.ChangeOption{handler.Labels(filters{"app": handler.Present()}), handler.Labels(filters{"app": handler.Equal("web")})}, false},
		"one label in two options, right": {[]handler.ChangeOption{handler.Labels(filters{"app": handler.Present()}), handler.Labels(filters{"app": handler.Equal("db")})}, true},
		"labels and nil":                  {[]handler.ChangeOption{handler.Labels(filters{"app": handler.Equal("web")}), handler.Labels(nil)}, false},
		"a predicate that accepts":        {[]handler.ChangeOption{whenOf(func(a *handler.Call) bool { return a.Body().Labels()["app"] == "db" })}, true},
		"two predicates of which one accepts": {[]handler.ChangeOption{
			whenOf(func(*handler.Call) bool { return true }), whenOf(func(*handler.Call) bool { return false }),
		}, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := update(t, test.options...).InScope(occasion(cause.Update, object, object)); got != test.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

// Users may share a map of filters between handlers.
func TestOptionsDoNotModifyTheFilters(t *testing.T) {
	shared := map[string]handler.Matcher{"app": handler.Present()}
	update(t, handler.Labels(shared), handler.Labels(map[string]handler.Matcher{"app": handler.Equal("x"), "b": handler.Present()}))
	if len(shared) != 1 {
		t.Errorf("got %v", shared)
	}
}

func TestFieldFilters(t *testing.T) {
	spec := func(size any) m { return m{"spec": m{"size": size}} }
	field := handler.Field("spec.size")
	tests := map[string]struct {
		options  []handler.ChangeOption
		from, to m
		want     bool
	}{
		"the field has changed":                 {nil, spec(1), spec(2), true},
		"the field has not changed":             {nil, spec(1), spec(1), false},
		"the field was added":                   {nil, m{}, spec(1), true},
		"the field was removed":                 {nil, spec(1), m{}, true},
		"the field never existed":               {nil, m{}, m{"spec": m{"other": 1}}, false},
		"the current value matches":             {[]handler.ChangeOption{handler.Value(handler.Equal(2))}, spec(1), spec(2), true},
		"the previous value matches":            {[]handler.ChangeOption{handler.Value(handler.Equal(1))}, spec(1), spec(2), true},
		"neither value matches":                 {[]handler.ChangeOption{handler.Value(handler.Equal(3))}, spec(1), spec(2), false},
		"an absent value does not match":        {[]handler.ChangeOption{handler.Value(handler.Absent())}, spec(1), spec(2), false},
		"the transition matches":                {[]handler.ChangeOption{handler.ValueBefore(handler.Equal(1)), handler.ValueAfter(handler.Equal(2))}, spec(1), spec(2), true},
		"the old value does not match":          {[]handler.ChangeOption{handler.ValueBefore(handler.Equal(0))}, spec(1), spec(2), false},
		"the new value does not match":          {[]handler.ChangeOption{handler.ValueAfter(handler.Equal(3))}, spec(1), spec(2), false},
		"the old value is absent":               {[]handler.ChangeOption{handler.ValueBefore(handler.Absent())}, m{}, spec(2), true},
		"the new value is absent":               {[]handler.ChangeOption{handler.ValueAfter(handler.Absent())}, spec(1), m{}, true},
		"only a hash of the old value is known": {[]handler.ChangeOption{handler.ValueBefore(handler.Equal("a"))}, spec(hashed("a")), spec("b"), true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			d := update(t, append([]handler.ChangeOption{field}, test.options...)...)
			if got := d.Selects(occasion(cause.Update, test.from, test.to)); got != test.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

// A handler of a field sees only its field; OldObject provides the entire object.
func TestTransitionIsRelativeToTheField(t *testing.T) {
	from, to := m{"spec": m{"size": int64(1)}}, m{"spec": m{"size": int64(2)}, "metadata": m{"labels": m{"a": "b"}}}
	tests := map[string]struct {
		d        *handler.Declaration
		from     object.Essence
		old, new any
		changes  int
	}{
		"of the object":     {update(t), from, from, to, 2},
		"of a field":        {update(t, handler.Field("spec.size")), from, int64(1), int64(2), 1},
		"of an added field": {update(t, handler.Field("spec.size")), nil, nil, int64(2), 1},
		"of a new object":   {update(t), nil, nil, to, 1},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := test.d.Transition(occasion(cause.Update, test.from, to))
			if !got.Old.Equals(test.old) || !got.New.Equals(test.new) || len(got.Diff) != test.changes || got.Reason != cause.Update {
				t.Errorf("got %v", got)
			}
			if got.Old.Exists() != (test.old != nil) || !object.Equal(got.OldEssence, test.from) {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestOnlyRequiredDeletionHandlersHoldDeletion(t *testing.T) {
	mandatory, err := handler.Delete(kex, change(doNothing))
	if !declared(t, mandatory, err).HoldsDeletion() {
		t.Error("a deletion handler does not hold its objects")
	}
	optional, err := handler.Delete(kex, change(doNothing), handler.Optional())
	if declared(t, optional, err).HoldsDeletion() {
		t.Error("an optional deletion handler holds its objects")
	}
	if update(t).HoldsDeletion() {
		t.Error("an update handler holds its objects")
	}
}

// Daemons and timers are matched against the current object, not against its earlier state.
func TestBackgroundHandlersMatchTheCurrentObject(t *testing.T) {
	before, after := m{"spec": m{"size": int64(1)}}, m{"spec": m{"other": int64(2)}}
	for name, test := range map[string]struct {
		o    *handler.Cause
		want bool
	}{
		"the field exists":      {occasion("update", after, before), true},
		"the field was removed": {occasion("update", before, after), false},
		"it was never handled":  {occasion("create", nil, before), true},
		"nothing has happened":  {occasion("", before, before), true},
		"it is being deleted":   {occasion("delete", after, after), false},
	} {
		t.Run(name, func(t *testing.T) {
			agree := whenOf(func(a *handler.Call) bool {
				return a.Reason() == "" && !a.Transition().Old.Exists() && a.Transition().Diff == nil
			})
			for _, d := range []*handler.Declaration{
				daemon(t, accompany, handler.Field("spec.size"), agree), timer(t, tickOnce, handler.Field("spec.size"), agree),
			} {
				if d.InScope(test.o) != test.want || d.Selects(test.o) != test.want {
					t.Errorf("the %s handler: %v", d.Kind, d.InScope(test.o))
				}
			}
		})
	}
}

func TestKindProperties(t *testing.T) {
	changing := map[handler.Kind]bool{
		handler.OnCreate: true, handler.OnUpdate: true, handler.OnDelete: true, handler.OnResume: true, handler.OnField: true, handler.Subhandler: true,
		handler.OnEvent: false, handler.OnDaemon: false, handler.OnTimer: false, handler.OnIndex: false,
	}
	for kind, want := range changing {
		background := kind == handler.OnDaemon || kind == handler.OnTimer
		if kind.IsChange() != want || kind.IsBackground() != background {
			t.Errorf("%s: got %v, %v", kind, kind.IsChange(), kind.IsBackground())
		}
	}
	for _, d := range []*handler.Declaration{daemon(t, accompany), timer(t, tickOnce)} {
		if d.HoldsDeletion() {
			t.Errorf("the %s handler holds deletions", d.Kind)
		}
	}
}

// An engine that has only the live object can use the filters, too.
func TestFiltersSeeTheLiveObject(t *testing.T) {
	body := object.NewBody(m{"metadata": m{"labels": m{"a": "b"}, "annotations": m{"c": "d"}}, "spec": m{"size": int64(1)}})
	o := &handler.Cause{CallContext: handler.CallContext{Live: func() *object.Body { return body }}}
	present := map[string]handler.Matcher{"a": handler.Present()}
	d := timer(t, tickOnce, handler.Labels(present), handler.Annotations(map[string]handler.Matcher{"a": handler.Absent()}), handler.Field("spec.size"))
	if !d.InScope(o) {
		t.Error("the filter does not match")
	}
	body = object.NewBody(m{"metadata": m{"annotations": m{"a": "b"}}, "spec": m{}})
	if d.InScope(o) {
		t.Error("the filter matches the earlier state")
	}
}
