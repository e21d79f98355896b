package inspect

import (
	"context"
	"encoding/json"
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/internal/handlertest"
	"github.com/kopf-go/kopf/internal/registry"
	"github.com/kopf-go/kopf/pkg/model/convergence"
	"github.com/kopf-go/kopf/pkg/model/index"
	"github.com/kopf-go/kopf/pkg/model/memo"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/selector"
	"github.com/kopf-go/kopf/pkg/reconcile/discovery"
	"github.com/kopf-go/kopf/pkg/reconcile/inspection"
	"github.com/kopf-go/kopf/pkg/settings"
)

type m = map[string]any

var (
	kex    = selector.New("kex")
	change = handlertest.Function(func(context.Context, *handler.Call) error { return errors.New("called") })
)

func create(o ...handler.ChangeOption) declare {
	return func(r *registry.Registry) { r.Add(handler.Create(kex, change, append(o, handler.ID("fn"))...)) }
}

func update(o ...handler.ChangeOption) declare {
	return func(r *registry.Registry) { r.Add(handler.Update(kex, change, append(o, handler.ID("fn"))...)) }
}

func remove(o ...handler.ChangeOption) declare {
	return func(r *registry.Registry) { r.Add(handler.Delete(kex, change, append(o, handler.ID("fn"))...)) }
}

func resume(o ...handler.ChangeOption) declare {
	return func(r *registry.Registry) { r.Add(handler.Resume(kex, change, append(o, handler.ID("fn"))...)) }
}

type declare = func(*registry.Registry)

// explained returns the explanation of an object.
func explained(t *testing.T, raw m, declares ...declare) *Explanation {
	t.Helper()
	r := &registry.Registry{}
	for _, declare := range declares {
		declare(r)
	}
	handlers, err := r.Handlers(nil)
	if err != nil {
		t.Fatal(err)
	}
	resource := discovery.SelectedResource{
		Resource:  selector.Resource{Group: "kopf.dev", Version: "v1", Plural: "kex", Kind: "Kex", Namespaced: true, Verbs: []string{"list", "watch", "patch"}},
		Selectors: []selector.Selector{kex},
	}
	n, err := inspection.New(handlers, settings.Default()).Inspect(t.Context(), resource, raw)
	if err != nil {
		t.Fatal(err)
	}
	return describe(subject{
		Object: n, object: &unstructured.Unstructured{Object: raw}, kubectl: "kex.kopf.dev", diffBase: settings.Default().Persistence.DiffBase,
		commands:  CommandLine{Pattern: "kopf COMMAND ./handlers", Flags: []string{"--context=my cluster"}},
		finalizer: "kopf.zalando.org/KopfFinalizerMarker", now: time.Now(),
	})
}

// object returns an object with a size, and with what the functions add.
func withSize(size int64, with ...func(m)) m {
	raw := m{"apiVersion": "kopf.dev/v1", "kind": "Kex", "metadata": m{"name": "a", "namespace": "default", "uid": "u", "annotations": m{}}, "spec": m{"size": size}}
	for _, add := range with {
		add(raw)
	}
	return raw
}

func annotated(key, value string) func(m) {
	return func(raw m) { raw["metadata"].(m)["annotations"].(m)["kopf.zalando.org/"+key] = value }
}

// handled is set by an operator that has handled the object with the size 1.
func handled() func(m) {
	text, _ := json.Marshal(m{"spec": m{"size": 1}})
	return annotated("last-handled-configuration", string(text)+"\n")
}

func record(fields m) func(m) { return recordOf("fn", fields) }

func recordOf(id string, fields m) func(m) {
	return func(raw m) {
		text, _ := json.Marshal(fields)
		annotated(id, string(text))(raw)
	}
}

func deleting(raw m) { raw["metadata"].(m)["deletionTimestamp"] = "2026-01-01T00:00:00Z" }

func finalized(names ...any) func(m) {
	return func(raw m) { raw["metadata"].(m)["finalizers"] = names }
}

const ours = "kopf.zalando.org/KopfFinalizerMarker"

func labeled(value string) func(m) {
	return func(raw m) { raw["metadata"].(m)["labels"] = m{"app": value} }
}

func wantsDB() handler.Option {
	return handler.Labels(map[string]handler.Matcher{"app": handler.Equal("db")})
}

func at(d time.Duration) string {
	return time.Now().Add(d).UTC().Format("2006-01-02T15:04:05.000000+00:00")
}

func daemon(r *registry.Registry) {
	r.Add(handler.Daemon(kex, handlertest.Function(func(context.Context, *handler.Call) error { return nil }), handler.ID("watch")))
}

var visits = memo.New(func() int { return 1 }, nil)

// withoutProgram matches commands that cannot be pasted into a shell.
var withoutProgram = regexp.MustCompile(`(retry|rerun|skip|unsuspend) kex|-n default( (fn|shop))?( --abandon)?([,.)\n]|$)`)

func TestExplanations(t *testing.T) {
	names := index.New[string, string]()
	indexed := func(r *registry.Registry) {
		r.Add(handler.Index(kex, handlertest.Filling(names, func(context.Context, *handler.Call) (any, error) { return map[string]string{}, nil }), handler.ID("names")))
	}
	waiting := m{"started": at(-time.Hour), "delayed": at(time.Hour), "purpose": "update", "retries": 2, "message": "not yet"}
	parent := record(m{"started": at(-time.Hour), "delayed": at(time.Hour), "purpose": "update", "retries": 1, "subrefs": []any{"fn/a"}})
	ensure := func(o ...handler.ChildOption) declare {
		return func(r *registry.Registry) {
			all, err := handler.Ensure(kex, handlertest.Returning(func(context.Context, *handler.Call) ([]client.Object, error) { return nil, errors.New("called") }), append(o, handler.ID("shop"))...)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range all {
				r.Add(d, nil)
			}
		}
	}
	child := func(r *registry.Registry) {
		r.Add(handler.Child(kex, selector.New("pods"), handlertest.Function(func(context.Context, *handler.Call) error { return nil }), handler.ID("pod")))
	}
	recorded := func(name string, fields m) func(m) {
		text, _ := json.Marshal(fields)
		return annotated(name, string(text))
	}
	failed := m{"started": at(-time.Hour), "stopped": at(-time.Minute), "purpose": "update", "retries": 3, "failure": true, "message": "broken"}
	open := record(m{"started": at(-time.Hour), "purpose": "update", "retries": 1, "message": "not yet"})
	tests := map[string]struct {
		object   m
		handlers []declare
		want     []string // in the text
	}{
		"a new object":                    {withSize(1), []declare{create()}, []string{"It was never handled", "fn (create) will run"}},
		"a handled object":                {withSize(1, handled()), []declare{create()}, []string{"has not changed since", "fn (create) has nothing to do: the object was handled before"}},
		"a changed object":                {withSize(2, handled()), []declare{update()}, []string{"It has changed since", "change spec.size: 1 -> 2", "fn (update) will run"}},
		"no change for an update":         {withSize(1, handled()), []declare{update()}, []string{"fn (update) has nothing to do: nothing has changed"}},
		"an update of a new one":          {withSize(1), []declare{update()}, []string{"fn (update) has nothing to do: it is for later changes"}},
		"another label":                   {withSize(1, labeled("web")), []declare{create(wantsDB())}, []string{`fn (create) is not for this object: the label app is "web", and the handler wants "db"`, "No handler of changes applies to it"}},
		"no label":                        {withSize(1), []declare{create(wantsDB())}, []string{`the label app is absent, and the handler wants "db"`}},
		"an annotation that is absent":    {withSize(1), []declare{create(handler.Annotations(map[string]handler.Matcher{"note": handler.Present()}))}, []string{"the annotation note is absent, and the handler wants any value"}},
		"another value":                   {withSize(1), []declare{create(handler.Field("spec.size"), handler.Value(handler.Equal(7)))}, []string{"the field spec.size is 1, and the handler wants 7"}},
		"no field":                        {withSize(1), []declare{create(handler.Field("spec.name"))}, []string{"the field spec.name is absent, and the handler wants any value"}},
		"another field changed":           {withSize(2, handled(), func(raw m) { raw["spec"].(m)["name"] = "x" }, annotated("last-handled-configuration", `{"spec":{"size":1,"name":"x"}}`)), []declare{update(handler.Field("spec.name"))}, []string{"has nothing to do: its field spec.name has not changed"}},
		"a function of a label":           {withSize(1), []declare{create(handler.Labels(map[string]handler.Matcher{"app": handlertest.MatchFunc(func(object.Value, *handler.Call) bool { return false })}))}, []string{"the label app is absent, and the handler wants what the function at inspect/explain_test.go:"}},
		"a predicate":                     {withSize(1), []declare{create(handlertest.When(func(*handler.Call) bool { return false }))}, []string{"the function of When at inspect/explain_test.go:", "returns false for the object as it is now"}},
		"a predicate with an index":       {withSize(1), []declare{indexed, create(handlertest.When(func(*handler.Call) bool { return names.Has("a") }))}, []string{"fn (create) is not decidable here: a filter of it uses an index, which exists only in a running operator", "What has happened to it is not decidable here, because that depends on filters that are not.", "kubectl describe kex.kopf.dev/a -n default '--context=my cluster'", "Some filters cannot be evaluated here"}},
		"a predicate with a memo":         {withSize(1), []declare{create(handlertest.When(func(a *handler.Call) bool { return visits.Of(a) > 0 }))}, []string{"fn (create) is not decidable here: a filter of it uses a memo"}},
		"a predicate that panics":         {withSize(1), []declare{create(handlertest.When(func(*handler.Call) bool { panic("no settings") }))}, []string{"is not decidable here: a filter of it panicked", "no settings"}},
		"a wait":                          {withSize(2, handled(), record(waiting)), []declare{update()}, []string{"fn (update) waits until ", "(in 1h) after 2 attempts, the last error: not yet", "to call it now: kopf retry ./handlers kex.kopf.dev/a -n default fn '--context=my cluster'", "That has begun, and has not ended."}},
		"a wait with a limit":             {withSize(2, handled(), record(waiting)), []declare{update(handler.Retries(5))}, []string{"after 2 attempts (attempt 3 of 5), the last error: not yet\n"}},
		"a wait that is over":             {withSize(2, handled(), open), []declare{update()}, []string{"fn (update) will run after 1 attempt, the last error: not yet"}},
		"a failure":                       {withSize(2, handled(), record(failed)), []declare{update()}, []string{"fn (update) has failed for good at ", "after 3 attempts, the last error: broken", "kopf rerun ./handlers kex.kopf.dev/a -n default fn '--context=my cluster'"}},
		"a filter that no longer matches": {withSize(2, handled(), open, labeled("web")), []declare{update(wantsDB())}, []string{`is not retried anymore after 1 attempt, because the label app is "web", and the handler wants "db", the last error: not yet`}},
		"a renamed handler":               {withSize(2, handled(), annotated("former", `{"started":"2026-01-01T00:00:00.000000","purpose":"update","retries":1}`)), []declare{update()}, []string{"It has the progress of a handler that is not declared here: former", "kopf.ID", "If it was removed, its annotation can be removed, too."}},
		"a renamed handler of a field":    {withSize(2, handled(), annotated("theme.spec.size", `{"started":"2026-01-01T00:00:00.000000","purpose":"update","retries":1}`)), []declare{update(handler.Field("spec.size"))}, []string{`Was fn/spec.size called theme before? Declare it with kopf.ID("theme").`}},
		"a record that cannot be read":    {withSize(2, handled(), annotated("fn", "{")), []declare{update()}, []string{"A stored value cannot be read"}},
		"a sub-handler that waits":        {withSize(2, handled(), parent, recorded("fn.a", waiting)), []declare{update()}, []string{"fn/a (subhandler) waits until ", "(in 1h) after 2 attempts, the last error: not yet\n      → to call it now: kopf retry ./handlers kex.kopf.dev/a -n default fn/a '--context=my cluster'\n"}},
		"a sub-handler that is retried":   {withSize(2, handled(), parent, recorded("fn.a", waiting), annotated("request-retry", "1 fn/a")), []declare{update()}, []string{"The handler fn/a will be called now by a running operator as requested.", "fn/a (subhandler) is called as requested when its parent runs, after 2 attempts, the last error: not yet"}},
		"a sub-handler that is skipped":   {withSize(2, handled(), parent, recorded("fn.a", waiting), annotated("request-skip", "1 fn/a")), []declare{update()}, []string{"fn/a (subhandler) will be skipped as requested, when an operator honors the request\n"}},
		"a suspension":                    {withSize(2, handled(), annotated("request-suspend", "forever")), []declare{update()}, []string{"The object is suspended until the request is removed", "kopf unsuspend ./handlers kex.kopf.dev/a -n default '--context=my cluster'", "fn (update) waits, because the object is suspended"}},
		"a suspension until":              {withSize(2, handled(), annotated("request-suspend", "2999-01-01T00:00:00Z")), []declare{update()}, []string{"The object is suspended until 2999-01-01T00:00:00Z"}},
		"a suspension that is over":       {withSize(2, handled(), annotated("request-suspend", "2020-01-01T00:00:00Z")), []declare{update()}, []string{"fn (update) will run"}},
		"a mistyped suspension":           {withSize(2, handled(), annotated("request-suspend", "24h")), []declare{update()}, []string{"The request to suspend the object has no effect", "fn (update) will run"}},
		"a request":                       {withSize(2, handled(), record(waiting), annotated("request-retry", "1 fn")), []declare{update()}, []string{"The handler fn will be called now by a running operator as requested.", "fn (update) will run as requested, after 2 attempts"}},
		"a request that is refused":       {withSize(2, handled(), record(waiting), annotated("request-retry", "1 fm")), []declare{update()}, []string{"will be refused by a running operator", "fn"}},
		"a skip":                          {withSize(2, handled(), record(waiting), annotated("request-skip", "1 fn")), []declare{update()}, []string{"The handler fn will be skipped by a running operator as requested.", "fn (update) will be skipped as requested, when an operator honors the request"}},
		"a skip of a deletion":            {withSize(1, handled(), finalized(ours), deleting, annotated("request-skip", "1 fn abandon")), []declare{remove()}, []string{"The handler fn will be skipped by a running operator as requested.", "fn (delete) will be skipped as requested, when an operator honors the request"}},
		"a rerun":                         {withSize(1, handled(), annotated("request-rerun", "1 fn")), []declare{update()}, []string{"fn (update) will run again"}},
		"a rerun that waits":              {withSize(1, handled(), record(m{"started": at(-time.Hour), "delayed": at(time.Hour), "purpose": "resume", "retries": 1, "message": "not yet"}), annotated("requests-handled", `{"rerun":"1 fn"}`)), []declare{create()}, []string{"fn (create) waits until ", "(in 1h) after 1 attempt, the last error: not yet", "to call it now: kopf retry ./handlers kex.kopf.dev/a -n default fn '--context=my cluster'"}},
		"a later deletion":                {withSize(1, handled(), finalized(ours)), []declare{remove()}, []string{"fn (delete) will run when the object is deleted", "its deletion will wait for this operator"}},
		"no finalizer yet":                {withSize(1), []declare{remove()}, []string{"does not have the finalizer", "a running operator adds it"}},
		"a deletion":                      {withSize(1, handled(), finalized(ours), deleting), []declare{remove()}, []string{"It is being deleted, and has the finalizer of this operator", "fn (delete) will run"}},
		"a deletion without ours":         {withSize(1, handled(), finalized("example.com/other"), deleting), []declare{remove()}, []string{"does not have the finalizer of this operator", "This operator does not hold it.", "finalizer example.com/other of another controller, which must remove it: see its log.", `kubectl patch kex.kopf.dev/a -n default --type=merge -p '{"metadata":{"finalizers":[]}}' '--context=my cluster'`, "fn (delete) is not called anymore, because the object is being deleted without the finalizer of this operator. The operator removes it when the handler has ended, so the handler was called, unless "}},
		"a deletion held by a failure":    {withSize(1, handled(), finalized(ours), deleting, record(m{"started": at(-time.Hour), "stopped": at(-time.Minute), "purpose": "delete", "retries": 1, "failure": true, "message": "broken"})), []declare{remove(handler.HoldOnFailure())}, []string{"The deletion is held, because the handler fn has failed for good", "kopf skip ./handlers kex.kopf.dev/a -n default fn --abandon '--context=my cluster'"}},
		"a finalizer that nothing needs":  {withSize(1, handled(), finalized(ours)), []declare{create()}, []string{"no handler needs it: a running operator removes it"}},
		"a resumption that waits":         {withSize(1, handled(), record(m{"started": at(-time.Hour), "delayed": at(time.Hour), "purpose": "resume", "retries": 1, "message": "not yet"})), []declare{resume()}, []string{"fn (resume) waits until ", "(in 1h) after 1 attempt, the last error: not yet"}},
		"resuming":                        {withSize(1, handled()), []declare{resume()}, []string{"fn (resume) will run when an operator starts"}},
		"another operator":                {withSize(1, func(raw m) { raw["metadata"].(m)["annotations"].(m)["example.com/last-handled-configuration"] = "{}" }), []declare{create()}, []string{"Another operator with the prefix example.com handles the object, too"}},
		"no handlers of changes":          {withSize(1), []declare{indexed}, []string{"It has no handlers of changes", "names (index) puts the object into an index"}},
		"a timer": {withSize(1), []declare{func(r *registry.Registry) {
			r.Add(handler.Timer(kex, handlertest.Function(func(context.Context, *handler.Call) error { return nil }), handler.ID("tick"), handler.Interval(time.Minute)))
		}}, []string{"tick (timer) is called every 1m while an operator is active"}},
		"children of a new object":                  {withSize(1), []declare{ensure()}, []string{"- shop (ensure) will run\n      declared at inspect/explain_test.go:"}},
		"children of a handled object":              {withSize(1, handled()), []declare{ensure()}, []string{"- shop (ensure) has nothing to do: nothing has changed since the object was handled; it is called again when an operator starts, and when another client changes a child"}},
		"children of a resumption that waits":       {withSize(1, handled(), recordOf("shop", m{"started": at(-time.Hour), "delayed": at(time.Hour), "purpose": "resume", "retries": 1, "message": "not yet"})), []declare{ensure()}, []string{"- shop (ensure) waits until ", "after 1 attempt, the last error: not yet"}},
		"children by an index":                      {withSize(1, handled()), []declare{indexed, ensure(handler.WatchIndex(names))}, []string{"- shop (ensure) has nothing to do: nothing has changed since the object was handled; it is called again when an operator starts, when another client changes a child, and when an index changes that it watches"}},
		"children by an index wait":                 {withSize(1, handled(), recorded("shop.restore", m{"started": at(-time.Hour), "delayed": at(time.Hour), "retries": 1, "message": "delete it: kubectl delete configmaps one"})), []declare{indexed, ensure(handler.WatchIndex(names))}, []string{"after 1 attempt, to restore what others have changed in its children, or because an index has changed, the last error: delete it: kubectl delete configmaps one\n"}},
		"children that others changed":              {withSize(1, handled(), recorded("shop.restore", m{"started": at(-time.Hour), "delayed": at(time.Hour), "retries": 1, "message": "delete it: kubectl delete configmaps one"})), []declare{ensure()}, []string{"- shop (ensure) waits until ", "(in 1h) after 1 attempt, to restore what others have changed in its children, the last error: delete it: kubectl delete configmaps one\n"}},
		"children that are refused":                 {withSize(1, recorded("shop", m{"started": at(-time.Hour), "delayed": at(time.Hour), "purpose": "create", "retries": 1, "message": "the child ConfigMap default/a: it belongs to others"})), []declare{ensure()}, []string{"- shop (ensure) waits until ", "the child ConfigMap default/a: it belongs to others", "to call it now: kopf retry ./handlers kex.kopf.dev/a -n default shop '--context=my cluster'"}},
		"children of another object":                {withSize(1, labeled("web")), []declare{ensure(wantsDB())}, []string{`- shop (ensure) is not for this object: the label app is "web", and the handler wants "db"`}},
		"children while it is deleted":              {withSize(1, handled(), deleting), []declare{ensure()}, []string{"- shop (ensure) is not called now: the object is being deleted, and Kubernetes deletes the children that it owns"}},
		"children elsewhere":                        {withSize(1, handled(), finalized(ours), deleting, annotated("kopf-children", `["ConfigMap/other"]`)), []declare{ensure()}, []string{"- shop (ensure) will run"}},
		"children and a predicate":                  {withSize(1), []declare{indexed, ensure(handlertest.When(func(*handler.Call) bool { return names.Has("a") }))}, []string{"- shop (ensure) is not decidable here: a filter of it uses an index"}},
		"a handler of children":                     {withSize(1), []declare{child}, []string{"- pod (child) is called when a child of the object changes, and once when an operator starts; whether a child has changed meanwhile is not decidable here"}},
		"a handler of children waits":               {withSize(1, recorded("pod", m{"started": at(-time.Hour), "delayed": at(time.Hour), "retries": 2, "message": "not yet"})), []declare{child}, []string{"- pod (child) waits until ", "after 2 attempts, the last error: not yet"}},
		"a handler of children of a deleted object": {withSize(1, deleting), []declare{child}, []string{"- pod (child) is not called, because the object is being deleted"}},
		"drift": {withSize(1), []declare{ensure(), func(r *registry.Registry) {
			r.Add(handler.Drift(kex, handlertest.Returning(func(context.Context, *handler.Call) (convergence.Resolution, error) {
				return convergence.Accept(), nil
			}), handler.ID("scaled"), handler.EnsuredBy("shop")))
		}}, []string{"- scaled (drift) is asked when other clients change children that are returned by shop\n      declared at inspect/explain_test.go:"}},
		"a revision":                     {withSize(1, handled()), []declare{create(handler.Revision("2"))}, []string{"It was handled under another revision of a handler", "fn (create) will run"}},
		"a revision failed":              {withSize(1, handled(), annotated("handled-revisions", `{"failed":{"fn":"2"}}`)), []declare{create(handler.Revision("2"))}, []string{"It was handled, and has not changed since, but a handler has failed for good: fn.", "fn (create) has failed for good under its revision 2: it is called again on request, or under another revision", "kopf rerun ./handlers kex.kopf.dev/a -n default fn '--context=my cluster'"}},
		"a revision failed of an update": {withSize(1, handled(), annotated("handled-revisions", `{"failed":{"fn":"2"}}`)), []declare{update(handler.Revision("2"))}, []string{"fn (update) has failed for good under its revision 2: it is called again on request, for a change that it is for, or under another revision"}},
		"an outcome is gone":             {withSize(1, handled()), []declare{create()}, []string{"The object does not say whether the handlers have succeeded or failed for good, because it was handled without kopf.Conditions: see its events and the log. To call a handler again: kopf rerun ./handlers kex.kopf.dev/a -n default fn '--context=my cluster'"}},
		"a daemon":                       {withSize(1), []declare{daemon}, []string{"watch (daemon) runs while an operator is active, until it returns or fails for good"}},
		"a daemon that is not there":     {withSize(1), []declare{daemon}, []string{"The object does not have the finalizer kopf.zalando.org/KopfFinalizerMarker now: a running operator adds it while a daemon runs for the object."}},
		"a daemon of a deleted one":      {withSize(1, handled(), finalized(ours), deleting), []declare{daemon, create()}, []string{"which removes it when its deletion handlers and daemons have ended"}},
		"an idle timer": {withSize(1), []declare{func(r *registry.Registry) {
			r.Add(handler.Timer(kex, handlertest.Function(func(context.Context, *handler.Call) error { return nil }), handler.ID("tick"), handler.Interval(time.Minute), handler.Idle(time.Hour)))
		}}, []string{"tick (timer) is called while an operator is active, when the object has not changed for 1h"}},
		"a daemon suspended":  {withSize(1, annotated("request-suspend", "forever")), []declare{daemon}, []string{"watch (daemon) is stopped, because the object is suspended"}},
		"an index, suspended": {withSize(1, annotated("request-suspend", "forever")), []declare{indexed}, []string{"names (index) puts the object into an index"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			text := explained(t, test.object, test.handlers...).Text(Style{})
			for _, want := range test.want {
				if !strings.Contains(text, want) {
					t.Errorf("there is no %q in\n%s", want, text)
				}
			}
			if found := withoutProgram.FindString(text); found != "" {
				t.Errorf("the command %q cannot be pasted into a shell:\n%s", found, text)
			}
			if strings.Count(text, "shop (") > 1 || strings.Contains(text, "handler/change.go") {
				t.Errorf("a handler of Ensure is shown by its parts:\n%s", text)
			}
		})
	}
}
