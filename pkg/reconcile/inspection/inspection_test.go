package inspection

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/internal/handlertest"
	"github.com/kopf-go/kopf/internal/registry"
	"github.com/kopf-go/kopf/internal/verdict"
	"github.com/kopf-go/kopf/pkg/model/cause"
	"github.com/kopf-go/kopf/pkg/model/index"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/rollout"
	"github.com/kopf-go/kopf/pkg/model/selector"
	"github.com/kopf-go/kopf/pkg/reconcile/discovery"
	"github.com/kopf-go/kopf/pkg/settings"
)

type m = map[string]any

var (
	kex   = selector.New("kex")
	found = discovery.SelectedResource{
		Resource:  selector.Resource{Group: "kopf.dev", Version: "v1", Plural: "kex", Kind: "Kex", Namespaced: true, Verbs: []string{"list", "watch", "patch"}},
		Selectors: []selector.Selector{kex},
	}
	change = handlertest.Function(func(context.Context, *handler.Call) error { return errors.New("it was called") })
	names  = index.New[string, string]()
)

// declared returns handlers of all sorts. None of them may be called.
func declared(t *testing.T) registry.Handlers {
	t.Helper()
	r := &registry.Registry{}
	r.Add(handler.Create(kex, change, handler.ID("create")))
	r.Add(handler.Update(kex, change, handler.ID("update")))
	r.Add(handler.Update(kex, change, handler.ID("labeled"), handler.Labels(map[string]handler.Matcher{"app": handler.Present()})))
	r.Add(handler.Update(kex, change, handler.ID("indexed"), handlertest.When(func(*handler.Call) bool { return names.Has("a") })))
	r.Add(handler.Resume(kex, change, handler.ID("resume")))
	r.Add(handler.Delete(kex, change, handler.ID("delete"), handler.HoldOnFailure()))
	r.Add(handler.Daemon(kex, handlertest.Function(func(context.Context, *handler.Call) error { return nil }), handler.ID("daemon")))
	r.Add(handler.Index(kex, handlertest.Filling(names, func(context.Context, *handler.Call) (any, error) { return map[string]string{}, nil }), handler.ID("names")))
	handlers, err := r.Handlers(nil)
	if err != nil {
		t.Fatal(err)
	}
	WithoutIndices(handlers)
	return handlers
}

// An inspector in the process of an operator reads the indices that the operator fills, and leaves them alone.
func TestFiltersReadTheIndicesOfARunningOperator(t *testing.T) {
	filled := index.New[string, string]()
	r := &registry.Registry{}
	r.Add(handler.Create(kex, change, handler.ID("indexed"), handlertest.When(func(*handler.Call) bool { return filled.Has("a") })))
	r.Add(handler.Index(kex, handlertest.Filling(filled, func(context.Context, *handler.Call) (any, error) { return map[string]string{}, nil }), handler.ID("names")))
	handlers, err := r.Handlers(nil)
	if err != nil {
		t.Fatal(err)
	}
	i := New(handlers, settings.Default())
	isSelected := func() bool {
		t.Helper()
		n, err := i.Inspect(t.Context(), found, withSize(1, nil))
		if err != nil || n.Handlers[0].Undecidable != nil {
			t.Fatalf("got %v, and %v", err, n.Handlers[0].Undecidable)
		}
		return n.Handlers[0].Selected
	}
	if isSelected() {
		t.Error("the index is empty, and the handler is selected")
	}
	if err := filled.Claim(); err != nil {
		t.Fatal(err)
	}
	if err := filled.Replace(object.Key{Resource: "kex"}, map[string]string{"a": "b"}); err != nil {
		t.Fatal(err)
	}
	if !isSelected() || !slices.Equal(filled.Get("a"), []string{"b"}) {
		t.Error("the index has the key, and the handler is not selected")
	}
}

// withSize returns an object with a size, and with annotations of the operator.
func withSize(size int, annotations m) m {
	all := m{}
	for name, value := range annotations {
		text, isText := value.(string)
		if !isText {
			encoded, _ := json.Marshal(value)
			text = string(encoded)
		}
		all["kopf.zalando.org/"+name] = text
	}
	return m{"apiVersion": "kopf.dev/v1", "kind": "Kex", "metadata": m{"name": "a", "namespace": "default", "uid": "u", "annotations": all}, "spec": m{"size": size}}
}

func at(d time.Duration) string {
	return time.Now().Add(d).UTC().Format("2006-01-02T15:04:05.000000+00:00")
}

const (
	base      = "last-handled-configuration"
	finalizer = "kopf.zalando.org/KopfFinalizerMarker"
)

func TestObjectsAreInspected(t *testing.T) {
	handled := m{"spec": m{"size": 1}}
	waiting := m{"started": at(-time.Hour), "delayed": at(time.Hour), "purpose": "update", "retries": 2, "message": "not yet"}
	for name, test := range map[string]struct {
		object m
		reason cause.Reason
		// what is known of the object, as the words of facts
		facts string
		// states are the states of the handlers of changes, and selected are those that take part
		states   map[string]verdict.State
		selected []string
	}{
		"a new object": {
			withSize(1, nil), cause.Create, "diff in-scope needs-finalizer",
			map[string]verdict.State{"create": verdict.Due, "update": verdict.OtherReason, "resume": verdict.OtherReason},
			[]string{"create", "daemon"},
		},
		"a handled object": {
			withSize(1, m{base: handled}), cause.NoOp, "handled in-scope needs-finalizer resumes:resume",
			map[string]verdict.State{"create": verdict.OtherReason},
			[]string{"daemon"},
		},
		"a changed object": {
			withSize(2, m{base: handled}), cause.Update, "diff handled in-scope needs-finalizer resumes:resume",
			map[string]verdict.State{"update": verdict.Due, "labeled": verdict.Mismatched},
			[]string{"daemon", "update"},
		},
		"an attempt waits": {
			withSize(2, m{base: handled, "update": waiting}), cause.Update, "diff handled in-scope needs-finalizer open records:update resumes:resume",
			map[string]verdict.State{"update": verdict.Waiting},
			[]string{"daemon", "update"},
		},
		"a resumption has begun": {
			withSize(1, m{base: handled, "resume": m{"started": at(-time.Hour), "delayed": at(time.Hour), "purpose": "resume", "retries": 1}}),
			cause.Resume, "handled in-scope needs-finalizer open records:resume",
			map[string]verdict.State{"resume": verdict.Waiting},
			[]string{"daemon", "resume"},
		},
		"a request skips a handler": {
			withSize(2, m{base: handled, "update": waiting, "request-skip": "1 update"}), cause.Update,
			"diff handled in-scope needs-finalizer open records:update requests resumes:resume skips:update", nil,
			[]string{"daemon", "update"},
		},
		"the object is suspended": {
			withSize(2, m{base: handled, "request-suspend": "forever"}), cause.Update, "diff handled in-scope needs-finalizer resumes:resume suspended",
			map[string]verdict.State{"update": verdict.Suspended},
			[]string{"daemon", "update"},
		},
		"a record of a former handler": {
			withSize(2, m{base: handled, "former": m{"started": at(-time.Hour), "purpose": "update", "retries": 1}}), cause.Update,
			"diff handled in-scope needs-finalizer resumes:resume undeclared:former", nil,
			[]string{"daemon", "update"},
		},
		"a record that cannot be read": {
			withSize(2, m{base: handled, "update": "{"}), cause.Update, "diff handled in-scope needs-finalizer resumes:resume unreadable", nil, []string{"daemon", "update"},
		},
		"another change after a handler has ended": {
			withSize(3, m{
				base: handled, base + "-started": m{"cycle": "7", "first": m{"spec": m{"size": 2}}},
				"update":  m{"started": at(-time.Hour), "stopped": at(-time.Minute), "purpose": "update", "retries": 1, "success": true, "cycle": "7"},
				"labeled": m{"started": at(-time.Hour), "purpose": "update", "retries": 1, "cycle": "7"},
			}), cause.Update, "again:update diff handled in-scope later:update needs-finalizer open records:labeled,update resumes:resume",
			map[string]verdict.State{"update": verdict.Succeeded, "labeled": verdict.Dropped},
			nil,
		},
		"a failure holds the deletion": {
			func() m {
				raw := withSize(1, m{base: handled, "delete": m{"started": at(-time.Hour), "stopped": at(-time.Minute), "purpose": "delete", "retries": 1, "failure": true}})
				raw["metadata"].(m)["deletionTimestamp"] = "2026-01-01T00:00:00Z"
				raw["metadata"].(m)["finalizers"] = []any{finalizer}
				return raw
			}(), cause.Delete, "finalizer handled held:delete in-scope needs-finalizer open records:delete",
			map[string]verdict.State{"delete": verdict.Failed, "create": verdict.OtherReason},
			nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			n, err := New(declared(t), settings.Default()).Inspect(t.Context(), found, test.object)
			if err != nil {
				t.Fatal(err)
			}
			if n.Reason != test.reason {
				t.Errorf("got the reason %s, want %s", n.Reason, test.reason)
			}
			if got := factsOf(n); got != test.facts {
				t.Errorf("got  %s\nwant %s", got, test.facts)
			}
			var selected []string
			for _, h := range n.Handlers {
				if (h.Undecidable != nil) != (h.ID == "indexed") {
					t.Errorf("%s: got %v", h.ID, h.Undecidable)
				}
				if h.Selected {
					selected = append(selected, h.ID)
				}
				if want, has := test.states[h.ID]; has && h.Verdict.State != want {
					t.Errorf("%s is %s, want %s", h.ID, h.Verdict.State, want)
				}
			}
			slices.Sort(selected)
			if test.selected != nil && !slices.Equal(selected, test.selected) {
				t.Errorf("selected are %v, want %v", selected, test.selected)
			}
		})
	}
}

// factsOf returns what is known of an object, in words.
func factsOf(n *Object) string {
	words := []string{}
	say := func(word string, is bool) {
		if is {
			words = append(words, word)
		}
	}
	say("diff", len(n.Diff) > 0)
	say("finalizer", n.HasFinalizer)
	say("handled", n.WasHandled)
	say("held:"+n.HeldByFailure, n.HeldByFailure != "")
	say("in-scope", n.InScope)
	say("needs-finalizer", n.NeedsFinalizer)
	say("open", n.Open)
	say("records:"+strings.Join(slices.Sorted(maps.Keys(n.Records)), ","), len(n.Records) > 0)
	say("requests", len(n.Requests) > 0)
	say("suspended", n.Suspension.Active)
	say("undeclared:"+strings.Join(n.Undeclared, ","), len(n.Undeclared) > 0)
	say("unreadable", len(n.Unreadable) > 0)
	for _, h := range n.Handlers {
		say("again:"+h.ID, h.Again)
		say("later:"+h.ID, len(h.Later) > 0)
		say("resumes:"+h.ID, h.Resumes)
		say("skips:"+h.ID, h.Skips)
	}
	slices.Sort(words)
	return strings.Join(words, " ")
}

// The conditions of an object keep why its handlers have failed. Those of handlers that are not declared no
// longer count.
func TestFailuresAreReadFromConditions(t *testing.T) {
	r := &registry.Registry{}
	r.Add(handler.Create(kex, change, handler.ID("create")))
	r.Add(handler.ForConditions(kex, nil))
	handlers, err := r.Handlers(nil)
	if err != nil {
		t.Fatal(err)
	}
	i := New(handlers, settings.Default())
	object := withSize(1, m{base: m{"spec": m{"size": 1}}})
	object["status"] = m{"conditions": []any{m{"type": "Stalled", "status": "True", "reason": "Failed", "message": "Handler create failed permanently: no\nHandler create/a failed permanently: no, too\nHandler former failed permanently: never"}}}
	n, err := i.Inspect(t.Context(), found, object)
	if err != nil {
		t.Fatal(err)
	}
	if want := map[string]string{"create": "no", "create/a": "no, too"}; !maps.Equal(n.Failed, want) {
		t.Errorf("failed are %v, want %v", n.Failed, want)
	}
	if want := map[string]string{"former": "never"}; !maps.Equal(n.Forgotten, want) {
		t.Errorf("forgotten are %v, want %v", n.Forgotten, want)
	}
	if !i.HasConditions(found) || New(declared(t), settings.Default()).HasConditions(found) {
		t.Error("the declaration of the conditions is not known")
	}
	if err := i.CheckConditions(found, nil, true); err == nil || !strings.Contains(err.Error(), "is not a custom resource") {
		t.Errorf("got %v", err)
	}
}

func TestObjectsOfARolloutAreCounted(t *testing.T) {
	r := &registry.Registry{}
	r.Add(handler.Create(kex, change, handler.ID("create"), handler.Revision("2"), handler.Rollout(rollout.Step{Percent: 50})))
	handlers, err := r.Handlers(nil)
	if err != nil {
		t.Fatal(err)
	}
	i := New(handlers, settings.Default())
	tally := Rollout{Declaration: handlers[0]}
	for name, marks := range map[string]any{"a": nil, "b": m{"done": m{"create": "2"}}, "c": m{"failed": m{"create": "2"}}} {
		annotations := m{base: m{"spec": m{"size": 1}}}
		if marks != nil {
			annotations["handled-revisions"] = marks
		}
		object := withSize(1, annotations)
		object["metadata"].(m)["name"] = name
		if err := i.Count(t.Context(), found, object, &tally); err != nil {
			t.Fatal(err)
		}
	}
	if got := tally.Of("default", "a"); !got.Waits || got.Waiting != 1 || got.Done != 1 || got.Failed != 1 {
		t.Errorf("got %+v", got)
	}
}

func TestObjectsThatAreNoJSONAreErrors(t *testing.T) {
	i := New(declared(t), settings.Default())
	broken := m{"spec": func() {}}
	if _, err := i.Inspect(t.Context(), found, broken); err == nil {
		t.Error("it was inspected")
	}
	if err := i.Count(t.Context(), found, broken, &Rollout{}); err == nil {
		t.Error("it was counted")
	}
}
