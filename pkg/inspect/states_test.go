package inspect

import (
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/internal/handlertest"
	"github.com/kopf-go/kopf/internal/registry"
	"github.com/kopf-go/kopf/internal/request"
	"github.com/kopf-go/kopf/pkg/model/selector"
	"github.com/kopf-go/kopf/pkg/reconcile/discovery"
	"github.com/kopf-go/kopf/pkg/reconcile/inspection"
	"github.com/kopf-go/kopf/pkg/settings"
)

func TestObjectsAreSummarized(t *testing.T) {
	created, written := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)
	begun, next := time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	waits := record(m{"started": at(-time.Hour), "delayed": at(time.Hour), "purpose": "update", "retries": 2})
	fails := m{"started": at(-2 * time.Hour), "stopped": at(-time.Hour), "purpose": "update", "retries": 1, "failure": true}
	held := m{"started": at(-2 * time.Hour), "stopped": at(-time.Hour), "purpose": "delete", "retries": 1, "failure": true}
	for name, test := range map[string]struct {
		object       m
		want         State
		since, until time.Time
		declares     []declare
	}{
		"a new object":                {withSize(1), Due, written, time.Time{}, []declare{create()}},
		"a handled object":            {withSize(1, handled()), Handled, written, time.Time{}, []declare{create()}},
		"a change":                    {withSize(2, handled()), Due, written, time.Time{}, []declare{update()}},
		"an attempt waits":            {withSize(2, handled(), waits), Waiting, begun, next, []declare{update()}},
		"an attempt is due":           {withSize(2, handled(), record(m{"started": at(-time.Hour), "purpose": "update", "retries": 1})), InProgress, begun, time.Time{}, []declare{update()}},
		"a handler has failed":        {withSize(2, handled(), record(fails), recordOf("other", m{"started": at(-time.Hour), "purpose": "update"})), Failed, begun, time.Time{}, []declare{update(), other}},
		"it is suspended":             {withSize(2, handled(), annotated("request-suspend", next.Format(time.RFC3339))), Suspended, written, next, []declare{update()}},
		"it is suspended and waits":   {withSize(2, handled(), waits, annotated("request-suspend", "forever")), Suspended, written, time.Time{}, []declare{update()}},
		"its deletion is in progress": {withSize(1, handled(), deleting, finalized(ours)), Due, written, time.Time{}, []declare{remove()}},
		"its deletion is held":        {withSize(1, handled(), deleting, finalized(ours), record(held)), Held, begun, time.Time{}, []declare{remove(handler.HoldOnFailure())}},
		"it waits for others":         {withSize(1, handled(), deleting, finalized("example.com/other")), Deleting, created, time.Time{}, []declare{remove()}},
		"no handler applies":          {withSize(1, labeled("api")), LeftAlone, written, time.Time{}, []declare{create(wantsDB())}},
		"only a daemon":               {withSize(1), Background, written, time.Time{}, []declare{daemon}},
		"a filter needs an operator":  {withSize(1, handled()), Undecidable, written, time.Time{}, []declare{update(handlertest.When(func(a *handler.Call) bool { return visits.Of(a) > 0 }))}},
		"a namespace out of scope":    {withSize(1, func(raw m) { raw["metadata"].(m)["namespace"] = "elsewhere" }), Outside, written, time.Time{}, []declare{create()}},
		"it cannot be judged":         {withSize(1, func(raw m) { raw["spec"] = func() {} }), Unknown, written, time.Time{}, []declare{create()}},
	} {
		t.Run(name, func(t *testing.T) {
			r := &registry.Registry{}
			for _, declare := range test.declares {
				declare(r)
			}
			handlers, err := r.Handlers(nil)
			if err != nil {
				t.Fatal(err)
			}
			resource := WatchedResource{discovery.SelectedResource{
				Resource:  selector.Resource{Group: "kopf.dev", Version: "v1", Plural: "kex", Kind: "Kex", Namespaced: true},
				Selectors: []selector.Selector{kex},
			}, "kex.kopf.dev"}
			c := &Cluster{Program: Program{Handlers: handlers}, inspector: inspection.New(handlers, settings.Default()), isServed: func(namespace string) bool { return namespace == "default" }}
			of := test.object["metadata"].(m)
			of["creationTimestamp"] = "2026-01-01T00:00:00Z"
			of["managedFields"] = []any{m{"manager": "kubectl", "time": "2026-01-02T00:00:00Z"}}
			got := c.Summarize(t.Context(), resource, &unstructured.Unstructured{Object: test.object})
			isNear := func(a, b time.Time) bool { return a.Sub(b).Abs() < time.Minute } // on a slow machine
			if got.State != test.want || !isNear(got.Since, test.since) || !isNear(got.Until, test.until) {
				t.Errorf("got %+v, want %s since %s until %s", got, test.want, test.since, test.until)
			}
			if !slices.Contains(States(), got.State) {
				t.Errorf("%s has no place in the order", got.State)
			}
		})
	}
}

func other(r *registry.Registry) { r.Add(handler.Update(kex, change, handler.ID("other"))) }

func TestExplanationsSayWhatCanBeRequested(t *testing.T) {
	e := explained(t, withSize(2, handled(), record(m{"started": at(-time.Hour), "delayed": at(time.Hour), "purpose": "update", "retries": 2})), update())
	if got := e.Requestable(request.Retry); !slices.Equal(got, []string{"fn"}) {
		t.Errorf("got %q", got)
	}
	h := e.Handlers[0]
	if h.Attempts != 2 || h.Started.IsZero() || !h.Delayed.After(time.Now()) || e.IsSuspended() {
		t.Errorf("got %+v", h)
	}
	e = explained(t, withSize(1, handled(), annotated("request-suspend", "forever")), create())
	if got := e.Requestable(request.Retry); len(got) > 0 || !e.IsSuspended() {
		t.Errorf("got %q", got)
	}
}
