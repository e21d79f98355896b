package explain

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/model/memo"
	"github.com/kopf-go/kopf/pkg/model/object"
)

// matching returns a filter of one label or annotation.
func matching(m kopf.Matcher) map[string]kopf.Matcher { return map[string]kopf.Matcher{"app": m} }

func isRejected(object.Value, kopf.Arguments) bool { return false }

// filtered is about a creation handler with a filter that does not match the object.
func filtered(with kopf.Option, body string) situation {
	return situation{
		arrange: func(s *scene) {
			s.OnCreate(examples, create, kopf.ID("fn"), with)
			s.patch(s.create("one"), body)
		},
		stopped: []string{"create", "fn (create): mismatched"},
		running: []string{"create", "fn (create): mismatched", "idle"},
	}
}

const (
	labeledWeb = `{"metadata":{"labels":{"app":"web"}}}`
	annotated  = `{"metadata":{"annotations":{"app":"web"}}}`
	unlabeled  = `{"metadata":{"labels":null}}`
)

var filters = map[string]situation{
	"a label is absent":               filtered(kopf.Labels(matching(kopf.Present())), unlabeled),
	"a label has another value":       filtered(kopf.Labels(matching(kopf.Equal("db"))), labeledWeb),
	"a label must be absent":          filtered(kopf.Labels(matching(kopf.Absent())), labeledWeb),
	"a function rejects a label":      filtered(kopf.Labels(matching(kopf.MatchFunc(isRejected))), labeledWeb),
	"an annotation is absent":         filtered(kopf.Annotations(matching(kopf.Present())), unlabeled),
	"an annotation has another value": filtered(kopf.Annotations(matching(kopf.Equal("db"))), annotated),
	"an annotation must be absent":    filtered(kopf.Annotations(matching(kopf.Absent())), annotated),
	"a predicate rejects the object":  filtered(kopf.When(func(a kopf.Arguments) bool { return a.Labels()["app"] == "db" }), labeledWeb),
	"a field is absent": {
		arrange: func(s *scene) {
			s.OnCreate(examples, create, kopf.ID("fn"), kopf.Field("spec.size"))
			s.create("one")
		},
		stopped: []string{"create", "fn/spec.size (create): mismatched"},
		running: []string{"create", "fn/spec.size (create): mismatched", "idle"},
	},
	"a field has another value": {
		arrange: func(s *scene) {
			s.OnCreate(examples, create, kopf.ID("fn"), kopf.Field("spec.size"), kopf.Value(kopf.Equal(7)))
			s.patch(s.create("one"), `{"spec":{"size":1}}`)
		},
		stopped: []string{"create", "fn/spec.size (create): mismatched"},
		running: []string{"create", "fn/spec.size (create): mismatched", "idle"},
	},
	"a field has a mapping": {
		arrange: func(s *scene) {
			s.OnCreate(examples, create, kopf.ID("fn"), kopf.Field("spec.sizes"), kopf.Value(kopf.Equal("large")))
			s.patch(s.create("one"), `{"spec":{"sizes":{"a":1,"b":["<x>",null]}}}`)
		},
		stopped: []string{"create", "fn/spec.sizes (create): mismatched"},
		running: []string{"create", "fn/spec.sizes (create): mismatched", "idle"},
	},
	"a mapping was added": {
		arrange: func(s *scene) {
			s.OnUpdate(examples, retried, kopf.ID("fn"))
			s.changed(`{"spec":{"size":1}}`, `{"metadata":{"annotations":{"hold":"1"}},"spec":{"size":null,"sizes":{"a":1}}}`)
		},
		stopped: []string{"update", `add metadata: {"annotations":{"hold":"1"}}`, "remove spec.size: 1", `add spec.sizes: {"a":1}`, "fn (update): due", "created (create): done"},
		running: []string{"update", `add metadata: {"annotations":{"hold":"1"}}`, "remove spec.size: 1", `add spec.sizes: {"a":1}`, "fn (update): waiting", "created (create): done", "looks later"},
	},
	"another field has changed": {
		arrange: func(s *scene) {
			s.OnUpdate(examples, create, kopf.ID("fn"), kopf.Field("spec.size"))
			s.OnUpdate(examples, create, kopf.ID("any"))
			s.changed(`{"spec":{"size":1,"name":"a"}}`, `{"spec":{"name":"b"}}`)
		},
		stopped: []string{"update", `change spec.name: "a" -> "b"`, "fn/spec.size (update): done", "any (update): due", "created (create): done"},
		running: []string{"noop", "fn/spec.size (update): done", "any (update): done", "created (create): done", "idle"},
	},
	"the earlier value is another one": changedSize(kopf.ValueBefore(kopf.Equal(7))),
	"the later value is another one":   changedSize(kopf.ValueAfter(kopf.Equal(7))),
	"the namespace is not served": {
		arrange: func(s *scene) {
			s.settings.Scope.Namespaces = []string{"team-*"}
			s.OnCreate(examples, create, kopf.ID("fn"))
			s.create("one")
		},
		stopped: []string{"create", "held", "fn (create): paused"},
		running: []string{"noop", "fn (create): done", "idle"},
	},
}

// changed creates an object that an earlier operator handles, and that changes afterwards.
func (s *scene) changed(before, after string) {
	s.t.Helper()
	s.OnCreate(examples, create, kopf.ID("created"))
	obj := s.create("one")
	s.patch(obj.DeepCopy(), before)
	former := s.start()
	s.isHandled(obj)
	former.Stop()
	s.patch(obj.DeepCopy(), after)
}

// changedSize is about an update handler with a filter that does not match the change.
func changedSize(with kopf.ChangeOption) situation {
	return situation{
		arrange: func(s *scene) {
			s.OnUpdate(examples, create, kopf.ID("fn"), kopf.Field("spec.size"), with)
			s.changed(`{"spec":{"size":1}}`, `{"spec":{"size":2}}`)
		},
		stopped: []string{"update", "change spec.size: 1 -> 2", "fn/spec.size (update): mismatched", "created (create): done"},
		running: []string{"noop", "fn/spec.size (update): done", "created (create): done", "idle"},
	}
}

var visits = memo.New(func() int { return 1 }, nil)

// unknowns are situations that only a running operator knows.
var unknowns = map[string]situation{
	"a predicate reads an index": {
		arrange: func(s *scene) {
			s.runs = kopf.NewRegistry() // commands and operators are in different processes
			for _, r := range []*kopf.Registry{s.Registry, s.runs} {
				prices := kopf.NewIndex(r, examples, func(context.Context, *kopf.Indexed) (map[string]string, error) { return nil, nil }, kopf.ID("prices"))
				r.OnCreate(examples, create, kopf.ID("fn"), kopf.When(func(a kopf.Arguments) bool { return prices.Has(a.Name()) }))
			}
			s.create("one")
		},
		stopped: []string{"no cause", "prices (index): ready", "fn (create): undecidable"},
		running: []string{"no cause", "prices (index): ready", "fn (create): undecidable", "idle"},
	},
	"a predicate reads a memo": {
		arrange: func(s *scene) {
			s.OnCreate(examples, create, kopf.ID("fn"), kopf.When(func(a kopf.Arguments) bool { return visits.Of(a) > 1 }))
			s.create("one")
		},
		stopped: []string{"no cause", "fn (create): undecidable"},
		running: []string{"no cause", "fn (create): undecidable", "idle"},
	},
	"a predicate uses a client that does not exist": {
		arrange: func(s *scene) {
			var reader client.Reader // a startup handler would set it
			s.OnCreate(examples, create, kopf.ID("fn"), kopf.When(func(a kopf.Arguments) bool {
				return reader.Get(context.Background(), client.ObjectKey{Name: a.Name()}, &corev1.Node{}) == nil
			}))
			s.create("one")
		},
		stopped: []string{"no cause", "fn (create): undecidable"},
		running: []string{"no cause", "failing", "fn (create): undecidable", "looks later"},
	},
	"a handler that will run may be running": {
		arrange: func(s *scene) {
			s.OnCreate(examples, func(ctx context.Context, _ *kopf.Change) error { <-ctx.Done(); return ctx.Err() }, kopf.ID("fn"))
			s.create("one")
		},
		stopped: []string{"create", "fn (create): due"},
		running: []string{"create", "fn (create): due", "fn is running"},
	},
}
