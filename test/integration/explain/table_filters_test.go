package explain

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/model/memo"
	"github.com/kopf-go/kopf/pkg/model/object"
)

const (
	leftAlone = "No handler of changes applies to it: it is left alone."
	isNew     = "It was never handled: an operator handles it as a creation."
	isHandled = "It was handled, and has not changed since."
	notFor    = "- fn (create) is not for this object: "
)

// matching returns a filter of one label or annotation.
func matching(m kopf.Matcher) map[string]kopf.Matcher { return map[string]kopf.Matcher{"app": m} }

func isRejected(object.Value, kopf.Arguments) bool { return false }

// filtered is about a creation handler with a filter that does not match the object.
func filtered(with kopf.Option, body, line string) situation {
	return situation{
		arrange: func(s *scene) {
			s.OnCreate(examples, create, kopf.ID("fn"), with)
			s.patch(s.create("one"), body)
		},
		stopped: []string{leftAlone, notFor + line, "- The deletion waits for nothing."},
		running: []string{leftAlone, notFor + line, nothingDue},
	}
}

const (
	labeledWeb = `{"metadata":{"labels":{"app":"web"}}}`
	annotated  = `{"metadata":{"annotations":{"app":"web"}}}`
	unlabeled  = `{"metadata":{"labels":null}}`
)

var filters = map[string]situation{
	"a label is absent":               filtered(kopf.Labels(matching(kopf.Present())), unlabeled, "the label app is absent, and the handler wants any value"),
	"a label has another value":       filtered(kopf.Labels(matching(kopf.Equal("db"))), labeledWeb, `the label app is "web", and the handler wants "db"`),
	"a label must be absent":          filtered(kopf.Labels(matching(kopf.Absent())), labeledWeb, `the label app is "web", and the handler wants no value`),
	"a function rejects a label":      filtered(kopf.Labels(matching(kopf.MatchFunc(isRejected))), labeledWeb, `the label app is "web", and the handler wants what the function at PLACE accepts`),
	"an annotation is absent":         filtered(kopf.Annotations(matching(kopf.Present())), unlabeled, "the annotation app is absent, and the handler wants any value"),
	"an annotation has another value": filtered(kopf.Annotations(matching(kopf.Equal("db"))), annotated, `the annotation app is "web", and the handler wants "db"`),
	"an annotation must be absent":    filtered(kopf.Annotations(matching(kopf.Absent())), annotated, `the annotation app is "web", and the handler wants no value`),
	"a predicate rejects the object":  filtered(kopf.When(func(a kopf.Arguments) bool { return a.Labels()["app"] == "db" }), labeledWeb, "the function of When at PLACE returns false for the object as it is now"),
	"a field is absent": {
		arrange: func(s *scene) {
			s.OnCreate(examples, create, kopf.ID("fn"), kopf.Field("spec.size"))
			s.create("one")
		},
		stopped: []string{leftAlone, "- fn/spec.size (create) is not for this object: the field spec.size is absent, and the handler wants any value"},
		running: []string{"- fn/spec.size (create) is not for this object: the field spec.size is absent, and the handler wants any value", nothingDue},
	},
	"a field has another value": {
		arrange: func(s *scene) {
			s.OnCreate(examples, create, kopf.ID("fn"), kopf.Field("spec.size"), kopf.Value(kopf.Equal(7)))
			s.patch(s.create("one"), `{"spec":{"size":1}}`)
		},
		stopped: []string{leftAlone, "- fn/spec.size (create) is not for this object: the field spec.size is 1, and the handler wants 7"},
		running: []string{"- fn/spec.size (create) is not for this object: the field spec.size is 1, and the handler wants 7", nothingDue},
	},
	"a field has a mapping": {
		arrange: func(s *scene) {
			s.OnCreate(examples, create, kopf.ID("fn"), kopf.Field("spec.sizes"), kopf.Value(kopf.Equal("large")))
			s.patch(s.create("one"), `{"spec":{"sizes":{"a":1,"b":["<x>",null]}}}`)
		},
		stopped: []string{leftAlone, `- fn/spec.sizes (create) is not for this object: the field spec.sizes is {"a":1,"b":["<x>",null]}, and the handler wants "large"`},
		running: []string{`- fn/spec.sizes (create) is not for this object: the field spec.sizes is {"a":1,"b":["<x>",null]}, and the handler wants "large"`, nothingDue},
	},
	"a mapping was added": {
		arrange: func(s *scene) {
			s.OnUpdate(examples, retried, kopf.ID("fn"))
			s.changed(`{"spec":{"size":1}}`, `{"metadata":{"annotations":{"hold":"1"}},"spec":{"size":null,"sizes":{"a":1}}}`)
		},
		stopped: []string{`- add metadata: {"annotations":{"hold":"1"}}`, "- remove spec.size: 1", `- add spec.sizes: {"a":1}`},
		running: []string{`- add metadata: {"annotations":{"hold":"1"}}`, "- remove spec.size: 1", `- add spec.sizes: {"a":1}`, isLater},
	},
	"another field has changed": {
		arrange: func(s *scene) {
			s.OnUpdate(examples, create, kopf.ID("fn"), kopf.Field("spec.size"))
			s.OnUpdate(examples, create, kopf.ID("any"))
			s.changed(`{"spec":{"size":1,"name":"a"}}`, `{"spec":{"name":"b"}}`)
		},
		stopped: []string{"- change spec.name: \"a\" -> \"b\"", "- fn/spec.size (update) has nothing to do: its field spec.size has not changed", "- any (update) will run, if an operator is running"},
		running: []string{isHandled, "- fn/spec.size (update) has nothing to do: nothing has changed since the object was handled", nothingDue},
	},
	"the earlier value is another one": changedSize(kopf.ValueBefore(kopf.Equal(7)), "the field spec.size was 1 before, and the handler wants 7 there"),
	"the later value is another one":   changedSize(kopf.ValueAfter(kopf.Equal(7)), "the field spec.size is 2 now, and the handler wants 7"),
	"the namespace is not served": {
		arrange: func(s *scene) {
			s.settings.Scope.Namespaces = []string{"team-*"}
			s.OnCreate(examples, create, kopf.ID("fn"))
			s.create("one")
		},
		stopped: []string{"Nothing happens now, because", "- The operator serves the namespaces team-*, and default is none of them: it does not see the object.", "- fn (create) would run"},
		running: []string{isHandled, "- fn (create) has nothing to do: the object was handled before", nothingDue},
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
func changedSize(with kopf.ChangeOption, why string) situation {
	return situation{
		arrange: func(s *scene) {
			s.OnUpdate(examples, create, kopf.ID("fn"), kopf.Field("spec.size"), with)
			s.changed(`{"spec":{"size":1}}`, `{"spec":{"size":2}}`)
		},
		stopped: []string{"- change spec.size: 1 -> 2", "- fn/spec.size (update) is not for this change: " + why},
		running: []string{isHandled, nothingDue},
	}
}

var visits = memo.New(func() int { return 1 }, nil)

const (
	undecided = "What has happened to it is not decidable here, because that depends on filters that are not."
	howToAsk  = "→ see the log of the operator with --verbose, and what it has done: kubectl describe kopfexamples.kopf.dev/one -n default"
)

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
		stopped: []string{undecided, "- fn (create) is not decidable here: a filter of it uses an index, which exists only in a running operator", howToAsk, "- prices (index) puts the object into an index while an operator is running"},
		running: []string{undecided, "- fn (create) is not decidable here: a filter of it uses an index, which exists only in a running operator", nothingDue},
	},
	"a predicate reads a memo": {
		arrange: func(s *scene) {
			s.OnCreate(examples, create, kopf.ID("fn"), kopf.When(func(a kopf.Arguments) bool { return visits.Of(a) > 1 }))
			s.create("one")
		},
		stopped: []string{undecided, "- fn (create) is not decidable here: a filter of it uses a memo, which exists only in a running operator", howToAsk},
		running: []string{"- fn (create) is not decidable here: a filter of it uses a memo, which exists only in a running operator", nothingDue},
	},
	"a predicate uses a client that does not exist": {
		arrange: func(s *scene) {
			var reader client.Reader // a startup handler would set it
			s.OnCreate(examples, create, kopf.ID("fn"), kopf.When(func(a kopf.Arguments) bool {
				return reader.Get(context.Background(), client.ObjectKey{Name: a.Name()}, &corev1.Node{}) == nil
			}))
			s.create("one")
		},
		stopped: []string{undecided, "- fn (create) is not decidable here: a filter of it panicked, called without a running operator (panic: runtime error: invalid memory address or nil pointer dereference)", howToAsk},
		running: []string{undecided},
	},
	"a handler that will run may be running": {
		arrange: func(s *scene) {
			s.OnCreate(examples, func(ctx context.Context, _ *kopf.Change) error { <-ctx.Done(); return ctx.Err() }, kopf.ID("fn"))
			s.create("one")
		},
		stopped: []string{isNew, "- fn (create) will run, if an operator is running", "- Whether a handler that will run is running already is not decidable here: ask the operator by --running, or see its log with --verbose. If it elects a leader, --operator-namespace says whether it is running."},
		running: []string{"- The handler fn is running since TIME (SOME TIME ago)."},
	},
}
