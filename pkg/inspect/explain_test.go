package inspect

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kopf-go/kopf/internal/golden"

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
	return explainedAs(t, "", raw, declares...)
}

// explainedAs returns the explanation of an object whose events tell the failure of a handler.
func explainedAs(t *testing.T, failed string, raw m, declares ...declare) *Explanation {
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
	inspection.WithoutIndices(handlers)
	n, err := inspection.New(handlers, settings.Default()).Inspect(t.Context(), resource, raw)
	if err != nil {
		t.Fatal(err)
	}
	return describe(subject{
		Object: n, object: &unstructured.Unstructured{Object: raw}, kubectl: "kex.kopf.dev", diffBase: settings.Default().Persistence.DiffBase,
		commands:  CommandLine{Pattern: "kopf COMMAND ./handlers", Flags: []string{"--context=my cluster"}},
		finalizer: "kopf.zalando.org/KopfFinalizerMarker", now: time.Now(), failed: failed,
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

func attentive(r *registry.Registry) {
	r.Add(handler.Daemon(kex, handlertest.Function(func(context.Context, *handler.Call) error { return nil }), handler.ID("watch"),
		handler.WakeOn("spec"), handler.WakeOn("metadata", "labels", "example.com/role"), handler.WatchChildren(selector.New("v1", "pods"), nil)))
}

func daemon(r *registry.Registry) {
	r.Add(handler.Daemon(kex, handlertest.Function(func(context.Context, *handler.Call) error { return nil }), handler.ID("watch")))
}

// today is the midnight in which this day began.
var today = time.Now().UTC().Truncate(24 * time.Hour)

var visits = memo.New(func() int { return 1 }, nil)

// sentences has the texts of the tests.
var sentences = golden.In("testdata/sentences.golden")

var unsteady = map[*regexp.Regexp]string{
	regexp.MustCompile(`20[0-2]\d-\d\d-\d\dT\d\d:\d\d:\d\dZ`): "TIME",
	regexp.MustCompile(`run of 20\d\d-\d\d-\d\d`):             "run of DAY",
	regexp.MustCompile(`\(in 59m\d\ds\)`):                     "(in 1h)", // on a slow machine
	regexp.MustCompile(`next for 20\d\d-\d\d-\d\d`):           "next for DAY",
	regexp.MustCompile(`\([0-9hms]+ ago\)`):                   "(SOME TIME ago)",
	regexp.MustCompile(`\(in \d{4,}h[0-9hms]*\)`):             "(in SOME TIME)",
	regexp.MustCompile(`[^\s(]+\.go:\d+`):                     "PLACE",
	regexp.MustCompile(`goroutine \d+ \[running\]:.*`):        "STACK",
}

// neutral replaces what differs from run to run.
func neutral(text string) string {
	for pattern, instead := range unsteady {
		text = pattern.ReplaceAllString(text, instead)
	}
	return text
}

// factsOf returns what has happened to the object, and the states of its handlers.
func factsOf(e *Explanation) []string {
	facts := append([]string{cmp.Or(e.Reason, "no cause")}, e.Changes...)
	if len(e.Holds) > 0 {
		facts = append(facts, "held")
	}
	for _, h := range e.Handlers {
		facts = append(facts, fmt.Sprintf("%s (%s): %s", h.ID, h.Kind, h.State))
		if !h.LastRun.IsZero() {
			facts = append(facts, "last run "+h.LastRun.Format(time.RFC3339))
		}
		if !h.NextRun.IsZero() {
			facts = append(facts, fmt.Sprintf("next run %s after the beginning of this day", h.NextRun.Sub(today)))
		}
	}
	if len(e.Requests) > 0 {
		facts = append(facts, "requested")
	}
	return facts
}

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
	ticking := func(o ...handler.BackgroundOption) declare {
		return func(r *registry.Registry) {
			r.Add(handler.Timer(kex, handlertest.Function(func(context.Context, *handler.Call) error { return nil }), append(o, handler.ID("tick"))...))
		}
	}
	ran := func(fields m) func(m) {
		fields["started"] = today.Format(time.RFC3339) // the run of this day
		return recorded("tick.schedule", fields)
	}
	wanted := func(text string, err error) declare {
		return ticking(handler.ScheduleFunc(func(*handler.Call) (string, error) { return text, err }))
	}
	// The handlers fn, second, rescue, and again are in an order.
	ordered := func(r *registry.Registry) {
		update()(r)
		for _, order := range []struct {
			id string
			of handler.ChangeOption
		}{{"second", handler.After("fn")}, {"rescue", handler.AfterFailure("fn", "second")}, {"again", handler.After("rescue")}} {
			r.Add(handler.Update(kex, change, handler.ID(order.id), order.of))
		}
	}
	succeeded := m{"started": at(-time.Hour), "stopped": at(-time.Minute), "purpose": "update", "retries": 1, "success": true}
	skipped := m{"started": at(-time.Hour), "stopped": at(-time.Minute), "purpose": "update", "success": true, "message": "its turn never comes: fn has failed"}
	changed := []string{"update", "change spec.size: 1 -> 2"}
	tests := map[string]struct {
		object   m
		handlers []declare
		facts    []string // the sentences are in the golden file
	}{
		"a schedule": {withSize(1, ran(m{"success": true, "retries": 1})), []declare{ticking(handler.Scheduled("0 0 * * *"))}, []string{
			"no cause", "tick (timer): background", "last run " + today.Format(time.RFC3339), "next run 24h0m0s after the beginning of this day",
		}},
		"a schedule whose run has failed": {withSize(1, ran(m{"failure": true, "retries": 3, "message": "the disk is full"})), []declare{wanted("0 0 * * *", nil)}, []string{
			"no cause", "tick (timer): background", "last run " + today.Format(time.RFC3339), "next run 24h0m0s after the beginning of this day",
		}},
		"a schedule that cannot be read": {withSize(1), []declare{wanted("soon", nil)}, []string{"no cause", "tick (timer): background"}},
		"a schedule with an error":       {withSize(1), []declare{wanted("", errors.New("there is no schedule"))}, []string{"no cause", "tick (timer): background"}},
		"a suspended schedule": {withSize(1, ran(m{"success": true, "retries": 1}), annotated("request-suspend", "forever")), []declare{ticking(handler.Scheduled("0 0 * * *"))}, []string{
			"no cause", "held", "tick (timer): suspended", "last run " + today.Format(time.RFC3339), "next run 24h0m0s after the beginning of this day",
		}},
		"an interval of the object": {withSize(1), []declare{ticking(handler.IntervalFunc(func(*handler.Call) time.Duration { return time.Hour }))}, []string{
			"no cause", "tick (timer): background",
		}},
		"an order at its beginning": {withSize(2, handled()), []declare{ordered}, append(changed,
			"fn (update): due", "second (update): outOfTurn", "rescue (update): outOfTurn", "again (update): outOfTurn")},
		"an order after a success": {withSize(2, handled(), record(succeeded)), []declare{ordered}, append(changed,
			"fn (update): succeeded", "second (update): due", "rescue (update): outOfTurn", "again (update): outOfTurn")},
		"an order after a failure": {withSize(2, handled(), record(failed)), []declare{ordered}, append(changed,
			"fn (update): failed", "second (update): skipped", "rescue (update): due", "again (update): outOfTurn")},
		"an order after a skip": {withSize(2, handled(), record(failed), recordOf("second", skipped)), []declare{ordered}, append(changed,
			"fn (update): failed", "second (update): skipped", "rescue (update): due", "again (update): outOfTurn")},
		"an order while one waits": {withSize(2, handled(), record(waiting)), []declare{ordered}, append(changed,
			"fn (update): waiting", "second (update): outOfTurn", "rescue (update): outOfTurn", "again (update): outOfTurn")},
		"a change and an idle time":       {withSize(2, handled()), []declare{update(handler.Idle(time.Hour))}, append(changed, "fn (update): due")},
		"children and an idle time":       {withSize(1), []declare{ensure(handler.Idle(time.Hour))}, []string{"create", "shop (ensure): due"}},
		"an idle time that has passed":    {withSize(2, handled(), open), []declare{update(handler.Idle(time.Hour))}, append(changed, "fn (update): due")},
		"a new object":                    {withSize(1), []declare{create()}, []string{"create", "fn (create): due"}},
		"a handled object":                {withSize(1, handled()), []declare{create()}, []string{"noop", "fn (create): done"}},
		"a changed object":                {withSize(2, handled()), []declare{update()}, []string{"update", "change spec.size: 1 -> 2", "fn (update): due"}},
		"no change for an update":         {withSize(1, handled()), []declare{update()}, []string{"noop", "fn (update): done"}},
		"an update of a new one":          {withSize(1), []declare{update()}, []string{"create", "fn (update): later"}},
		"another label":                   {withSize(1, labeled("web")), []declare{create(wantsDB())}, []string{"create", "fn (create): mismatched"}},
		"no label":                        {withSize(1), []declare{create(wantsDB())}, []string{"create", "fn (create): mismatched"}},
		"an annotation that is absent":    {withSize(1), []declare{create(handler.Annotations(map[string]handler.Matcher{"note": handler.Present()}))}, []string{"create", "fn (create): mismatched"}},
		"another value":                   {withSize(1), []declare{create(handler.Field("spec.size"), handler.Value(handler.Equal(7)))}, []string{"create", "fn/spec.size (create): mismatched"}},
		"no field":                        {withSize(1), []declare{create(handler.Field("spec.name"))}, []string{"create", "fn/spec.name (create): mismatched"}},
		"another field changed":           {withSize(2, handled(), func(raw m) { raw["spec"].(m)["name"] = "x" }, annotated("last-handled-configuration", `{"spec":{"size":1,"name":"x"}}`)), []declare{update(handler.Field("spec.name"))}, []string{"update", "change spec.size: 1 -> 2", "fn/spec.name (update): done"}},
		"a function of a label":           {withSize(1), []declare{create(handler.Labels(map[string]handler.Matcher{"app": handlertest.MatchFunc(func(object.Value, *handler.Call) bool { return false })}))}, []string{"create", "fn (create): mismatched"}},
		"a predicate":                     {withSize(1), []declare{create(handlertest.When(func(*handler.Call) bool { return false }))}, []string{"create", "fn (create): mismatched"}},
		"a predicate with an index":       {withSize(1), []declare{indexed, create(handlertest.When(func(*handler.Call) bool { return names.Has("a") }))}, []string{"no cause", "names (index): ready", "fn (create): undecidable"}},
		"a predicate with a memo":         {withSize(1), []declare{create(handlertest.When(func(a *handler.Call) bool { return visits.Of(a) > 0 }))}, []string{"no cause", "fn (create): undecidable"}},
		"a predicate that panics":         {withSize(1), []declare{create(handlertest.When(func(*handler.Call) bool { panic("no settings") }))}, []string{"no cause", "fn (create): undecidable"}},
		"a wait":                          {withSize(2, handled(), record(waiting)), []declare{update()}, []string{"update", "change spec.size: 1 -> 2", "fn (update): waiting"}},
		"a wait with a limit":             {withSize(2, handled(), record(waiting)), []declare{update(handler.Retries(5))}, []string{"update", "change spec.size: 1 -> 2", "fn (update): waiting"}},
		"a wait that is over":             {withSize(2, handled(), open), []declare{update()}, []string{"update", "change spec.size: 1 -> 2", "fn (update): due"}},
		"a failure":                       {withSize(2, handled(), record(failed)), []declare{update()}, []string{"update", "change spec.size: 1 -> 2", "fn (update): failed"}},
		"a filter that no longer matches": {withSize(2, handled(), open, labeled("web")), []declare{update(wantsDB())}, []string{"update", `add metadata: {"labels":{"app":"web"}}`, "change spec.size: 1 -> 2", "fn (update): dropped"}},
		"a renamed handler":               {withSize(2, handled(), annotated("former", `{"started":"2026-01-01T00:00:00.000000","purpose":"update","retries":1}`)), []declare{update()}, []string{"update", "change spec.size: 1 -> 2", "fn (update): due"}},
		"a renamed handler of a field":    {withSize(2, handled(), annotated("theme.spec.size", `{"started":"2026-01-01T00:00:00.000000","purpose":"update","retries":1}`)), []declare{update(handler.Field("spec.size"))}, []string{"update", "change spec.size: 1 -> 2", "fn/spec.size (update): due"}},
		"a record that cannot be read":    {withSize(2, handled(), annotated("fn", "{")), []declare{update()}, []string{"update", "change spec.size: 1 -> 2", "fn (update): due"}},
		"a sub-handler that waits":        {withSize(2, handled(), parent, recorded("fn.a", waiting)), []declare{update()}, []string{"update", "change spec.size: 1 -> 2", "fn (update): waiting", "fn/a (subhandler): waiting"}},
		"a sub-handler that is retried":   {withSize(2, handled(), parent, recorded("fn.a", waiting), annotated("request-retry", "1 fn/a")), []declare{update()}, []string{"update", "change spec.size: 1 -> 2", "fn (update): due", "fn/a (subhandler): due", "requested"}},
		"a sub-handler that is skipped":   {withSize(2, handled(), parent, recorded("fn.a", waiting), annotated("request-skip", "1 fn/a")), []declare{update()}, []string{"update", "change spec.size: 1 -> 2", "fn (update): due", "fn/a (subhandler): skipped", "requested"}},
		"a suspension":                    {withSize(2, handled(), annotated("request-suspend", "forever")), []declare{update()}, []string{"update", "change spec.size: 1 -> 2", "held", "fn (update): suspended"}},
		"a suspension until":              {withSize(2, handled(), annotated("request-suspend", "2999-01-01T00:00:00Z")), []declare{update()}, []string{"update", "change spec.size: 1 -> 2", "held", "fn (update): suspended"}},
		"a suspension that is over":       {withSize(2, handled(), annotated("request-suspend", "2020-01-01T00:00:00Z")), []declare{update()}, []string{"update", "change spec.size: 1 -> 2", "fn (update): due"}},
		"a mistyped suspension":           {withSize(2, handled(), annotated("request-suspend", "24h")), []declare{update()}, []string{"update", "change spec.size: 1 -> 2", "fn (update): due"}},
		"a request":                       {withSize(2, handled(), record(waiting), annotated("request-retry", "1 fn")), []declare{update()}, []string{"update", "change spec.size: 1 -> 2", "fn (update): due", "requested"}},
		"a request that is refused":       {withSize(2, handled(), record(waiting), annotated("request-retry", "1 fm")), []declare{update()}, []string{"update", "change spec.size: 1 -> 2", "fn (update): waiting", "requested"}},
		"a skip":                          {withSize(2, handled(), record(waiting), annotated("request-skip", "1 fn")), []declare{update()}, []string{"update", "change spec.size: 1 -> 2", "fn (update): skipped", "requested"}},
		"a skip of a deletion":            {withSize(1, handled(), finalized(ours), deleting, annotated("request-skip", "1 fn abandon")), []declare{remove()}, []string{"delete", "fn (delete): skipped", "requested"}},
		"a rerun":                         {withSize(1, handled(), annotated("request-rerun", "1 fn")), []declare{update()}, []string{"resume", "fn (update): due", "requested"}},
		"a rerun that waits":              {withSize(1, handled(), record(m{"started": at(-time.Hour), "delayed": at(time.Hour), "purpose": "resume", "retries": 1, "message": "not yet"}), annotated("requests-handled", `{"rerun":"1 fn"}`)), []declare{create()}, []string{"resume", "fn (create): waiting"}},
		"a later deletion":                {withSize(1, handled(), finalized(ours)), []declare{remove()}, []string{"noop", "fn (delete): later"}},
		"no finalizer yet":                {withSize(1), []declare{remove()}, []string{"create", "fn (delete): later"}},
		"a deletion":                      {withSize(1, handled(), finalized(ours), deleting), []declare{remove()}, []string{"delete", "fn (delete): due"}},
		"a deletion without ours":         {withSize(1, handled(), finalized("example.com/other"), deleting), []declare{remove()}, []string{"free", "fn (delete): undecidable"}},
		"a deletion held by a failure":    {withSize(1, handled(), finalized(ours), deleting, record(m{"started": at(-time.Hour), "stopped": at(-time.Minute), "purpose": "delete", "retries": 1, "failure": true, "message": "broken"})), []declare{remove(handler.HoldOnFailure())}, []string{"delete", "fn (delete): failed"}},
		"a finalizer that nothing needs":  {withSize(1, handled(), finalized(ours)), []declare{create()}, []string{"noop", "fn (create): done"}},
		"a resumption that waits":         {withSize(1, handled(), record(m{"started": at(-time.Hour), "delayed": at(time.Hour), "purpose": "resume", "retries": 1, "message": "not yet"})), []declare{resume()}, []string{"resume", "fn (resume): waiting"}},
		"resuming":                        {withSize(1, handled()), []declare{resume()}, []string{"noop", "fn (resume): later"}},
		"another operator":                {withSize(1, func(raw m) { raw["metadata"].(m)["annotations"].(m)["example.com/last-handled-configuration"] = "{}" }), []declare{create()}, []string{"create", "fn (create): due"}},
		"no handlers of changes":          {withSize(1), []declare{indexed}, []string{"no cause", "names (index): ready"}},
		"a timer": {withSize(1), []declare{func(r *registry.Registry) {
			r.Add(handler.Timer(kex, handlertest.Function(func(context.Context, *handler.Call) error { return nil }), handler.ID("tick"), handler.Interval(time.Minute)))
		}}, []string{"no cause", "tick (timer): background"}},
		"children of a new object":                  {withSize(1), []declare{ensure()}, []string{"create", "shop (ensure): due"}},
		"children of a handled object":              {withSize(1, handled()), []declare{ensure()}, []string{"noop", "shop (ensure): done"}},
		"children of a resumption that waits":       {withSize(1, handled(), recordOf("shop", m{"started": at(-time.Hour), "delayed": at(time.Hour), "purpose": "resume", "retries": 1, "message": "not yet"})), []declare{ensure()}, []string{"resume", "shop (ensure): waiting"}},
		"children by an index":                      {withSize(1, handled()), []declare{indexed, ensure(handler.WatchIndex(names))}, []string{"noop", "names (index): ready", "shop (ensure): done"}},
		"children by an index wait":                 {withSize(1, handled(), recorded("shop.restore", m{"started": at(-time.Hour), "delayed": at(time.Hour), "retries": 1, "message": "delete it: kubectl delete configmaps one"})), []declare{indexed, ensure(handler.WatchIndex(names))}, []string{"noop", "names (index): ready", "shop (ensure): waiting"}},
		"children that others changed":              {withSize(1, handled(), recorded("shop.restore", m{"started": at(-time.Hour), "delayed": at(time.Hour), "retries": 1, "message": "delete it: kubectl delete configmaps one"})), []declare{ensure()}, []string{"noop", "shop (ensure): waiting"}},
		"children that are refused":                 {withSize(1, recorded("shop", m{"started": at(-time.Hour), "delayed": at(time.Hour), "purpose": "create", "retries": 1, "message": "the child ConfigMap default/a: it belongs to others"})), []declare{ensure()}, []string{"create", "shop (ensure): waiting"}},
		"children of another object":                {withSize(1, labeled("web")), []declare{ensure(wantsDB())}, []string{"create", "shop (ensure): mismatched"}},
		"children while it is deleted":              {withSize(1, handled(), deleting), []declare{ensure()}, []string{"free", "shop (ensure): otherReason"}},
		"children elsewhere":                        {withSize(1, handled(), finalized(ours), deleting, annotated("kopf-children", `["ConfigMap/other"]`)), []declare{ensure()}, []string{"delete", "shop (ensure): due"}},
		"children and a predicate":                  {withSize(1), []declare{indexed, ensure(handlertest.When(func(*handler.Call) bool { return names.Has("a") }))}, []string{"create", "names (index): ready", "shop (ensure): undecidable"}},
		"a handler of children":                     {withSize(1), []declare{child}, []string{"no cause", "pod (child): untriggered"}},
		"a handler of children waits":               {withSize(1, recorded("pod", m{"started": at(-time.Hour), "delayed": at(time.Hour), "retries": 2, "message": "not yet"})), []declare{child}, []string{"no cause", "pod (child): waiting"}},
		"a handler of children of a deleted object": {withSize(1, deleting), []declare{child}, []string{"no cause", "pod (child): stopped"}},
		"drift": {withSize(1), []declare{ensure(), func(r *registry.Registry) {
			r.Add(handler.Drift(kex, handlertest.Returning(func(context.Context, *handler.Call) (convergence.Resolution, error) {
				return convergence.Accept(), nil
			}), handler.ID("scaled"), handler.EnsuredBy("shop")))
		}}, []string{"create", "shop (ensure): due", "scaled (drift): ready"}},
		"a revision":                     {withSize(1, handled()), []declare{create(handler.Revision("2"))}, []string{"update", "fn (create): due"}},
		"a revision failed":              {withSize(1, handled(), annotated("handled-revisions", `{"failed":{"fn":"2"}}`)), []declare{create(handler.Revision("2"))}, []string{"noop", "fn (create): failed"}},
		"a revision failed of an update": {withSize(1, handled(), annotated("handled-revisions", `{"failed":{"fn":"2"}}`)), []declare{update(handler.Revision("2"))}, []string{"noop", "fn (update): failed"}},
		"an outcome is gone":             {withSize(1, handled()), []declare{create()}, []string{"noop", "fn (create): done"}},
		"a daemon":                       {withSize(1), []declare{daemon}, []string{"no cause", "watch (daemon): background"}},
		"a daemon that looks at fields":  {withSize(1), []declare{attentive}, []string{"no cause", "watch (daemon): background"}},
		"a daemon that is not there":     {withSize(1), []declare{daemon}, []string{"no cause", "watch (daemon): background"}},
		"a daemon of a deleted one":      {withSize(1, handled(), finalized(ours), deleting), []declare{daemon, create()}, []string{"delete", "watch (daemon): stopped", "fn (create): otherReason"}},
		"an idle timer": {withSize(1), []declare{func(r *registry.Registry) {
			r.Add(handler.Timer(kex, handlertest.Function(func(context.Context, *handler.Call) error { return nil }), handler.ID("tick"), handler.Interval(time.Minute), handler.Idle(time.Hour)))
		}}, []string{"no cause", "tick (timer): background"}},
		"a daemon suspended":  {withSize(1, annotated("request-suspend", "forever")), []declare{daemon}, []string{"no cause", "held", "watch (daemon): suspended"}},
		"an index, suspended": {withSize(1, annotated("request-suspend", "forever")), []declare{indexed}, []string{"no cause", "held", "names (index): ready"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			e := explained(t, test.object, test.handlers...)
			if got := factsOf(e); !slices.Equal(got, test.facts) {
				t.Errorf("got the facts %q", got)
			}
			text := e.Text(Style{})
			sentences.Check(t, "", neutral(text))
			if found := withoutProgram.FindString(text); found != "" {
				t.Errorf("the command %q cannot be pasted into a shell:\n%s", found, text)
			}
			if strings.Count(text, "shop (") > 1 || strings.Contains(text, "handler/change.go") {
				t.Errorf("a handler of Ensure is shown by its parts:\n%s", text)
			}
		})
	}
}
