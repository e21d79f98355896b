package plan

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/internal/handlertest"
	"github.com/kopf-go/kopf/internal/registry"
	"github.com/kopf-go/kopf/internal/verdict"
	"github.com/kopf-go/kopf/pkg/model/cause"
	"github.com/kopf-go/kopf/pkg/reconcile/call"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/record"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/requests"
	"github.com/kopf-go/kopf/pkg/storage"
)

// typed returns handlers of a Go type, with options for that of the deletion. Two others are not for the object, or not for
// what happens to it, and have no type.
func typed(options ...handler.ChangeOption) func(r *registry.Registry) {
	return func(r *registry.Registry) {
		fn := func(context.Context, *handler.Call) error { return nil }
		pods := handlertest.Typed(&corev1.Pod{}, fn)
		r.Add(handler.Create(kexes, pods, handler.ID("create")))
		r.Add(handler.Update(kexes, pods, handler.ID("grow")))
		r.Add(handler.Delete(kexes, pods, append(options, handler.ID("delete"))...))
		r.Add(handler.Resume(kexes, handlertest.Function(fn), handler.ID("resume")))
		r.Add(handler.Delete(kexes, handlertest.Function(fn), handler.ID("special"), handler.Labels(map[string]handler.Matcher{"special": handler.Present()})))
	}
}

// The host network of a Pod is true or false.
func TestPlansForObjectsThatDoNotFit(t *testing.T) {
	misfit, same := m{"spec": m{"hostNetwork": "yes"}}, m{"spec": m{"hostNetwork": "yes"}}
	deleted := m{"spec": misfit["spec"], "deletionTimestamp": "2026-01-01T00:00:00Z"}
	before := m{"spec": m{"hostNetwork": true}}
	withOther := func(r *registry.Registry) {
		typed()(r)
		r.Add(handler.Create(kexes, handlertest.Function(func(context.Context, *handler.Call) error { return nil }), handler.ID("other")))
	}
	having := func(id string, r storage.Record) look {
		r.Started = time.Now()
		return look{handlers: typed(), object: deleted, held: true, records: map[string]storage.Record{id: r}}
	}
	daemon := func(r *registry.Registry) {
		timers(r)
		r.Add(handler.Daemon(kexes, handlertest.Typed(&corev1.Pod{}, func(context.Context, *handler.Call) error { return nil }), handler.ID("daemon")))
	}
	deletion := func(r *registry.Registry) {
		r.Add(handler.Delete(kexes, handlertest.Typed(&corev1.Pod{}, func(context.Context, *handler.Call) error { return nil }), handler.ID("delete")))
	}
	tests := map[string]struct {
		look look
		want string
	}{
		"a new object fits":                         {look{handlers: typed()}, "create; calls create; adds the finalizer"},
		"the same, and the deletion does not wait":  {look{handlers: typed(handler.OnMisfit(handler.Release))}, "create; calls create; adds the finalizer"},
		"a new object with only a deletion":         {look{handlers: deletion, object: misfit}, "create; adds the finalizer"},
		"a new object":                              {look{handlers: typed(), object: misfit}, "create; calls create; create waits"},
		"a new object with the finalizer":           {look{handlers: typed(), object: misfit, held: true}, "create; calls create; create waits"},
		"a new object that another handler fits":    {look{handlers: withOther, object: misfit}, "create; calls create other; create waits; adds the finalizer"},
		"a change":                                  {look{handlers: typed(), object: misfit, base: before}, "update; calls grow; grow waits; adds the finalizer"},
		"a change, and the deletion does not wait":  {look{handlers: typed(handler.OnMisfit(handler.Release)), object: misfit, base: before}, "update; calls grow; grow waits"},
		"a new object, and the deletion is untyped": {look{handlers: typed(handler.OnMisfit(handler.CallUntyped)), object: misfit}, "create; calls create; create waits; adds the finalizer"},
		"an object at rest":                         {look{handlers: typed(), object: misfit, base: same, held: true}, "noop; nothing to do"},
		"a deletion":                                {look{handlers: typed(), object: deleted, base: same, held: true}, "delete; calls delete; delete waits"},
		"a deletion that has ended":                 {having("delete", storage.Record{Purpose: cause.Delete, Retries: 1, Success: true}), "delete; calls delete"},
		"a deletion that does not wait":             {look{handlers: typed(handler.OnMisfit(handler.Release)), object: deleted, base: same, held: true}, "delete; delete is skipped"},
		"a deletion that is optional":               {look{handlers: typed(handler.Optional()), object: deleted, base: same, held: true}, "delete; delete is skipped; does not need the finalizer"},
		"a deletion that is untyped":                {look{handlers: typed(handler.OnMisfit(handler.CallUntyped)), object: deleted, base: same, held: true}, "delete; calls delete"},
		"a deletion of what was never handled":      {look{handlers: typed(), object: deleted, held: true}, "delete; delete is skipped"},
		"a deletion after an attempt":               {having("create", storage.Record{Purpose: cause.Create, Retries: 1}), "delete; calls delete; delete waits"},
		"a deletion after a skipped creation":       {having("create", storage.Record{Purpose: cause.Create, Success: true}), "delete; calls delete; delete waits"},
		"a deletion before an attempt":              {having("create", storage.Record{Purpose: cause.Create}), "delete; delete is skipped"},
		"a deletion after its own attempt":          {having("delete", storage.Record{Purpose: cause.Delete, Retries: 1}), "delete; delete is skipped"},
		"a daemon":                                  {look{handlers: daemon, object: misfit}, "runs timer; daemon waits"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := test.look.make(t); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

// The cycle stays open for those that wait, and ends without those that are skipped.
func TestMisfitsThatWaitAreNotCalled(t *testing.T) {
	p, _ := look{handlers: typed(), object: m{"spec": m{"hostNetwork": "yes"}}}.plan(t)
	if p.Cycle.Progress.Misfit("create") == nil || p.Cycle.Progress.Done() {
		t.Error("the handler does not wait")
	}
	deleted := m{"spec": m{"hostNetwork": "yes"}, "deletionTimestamp": "2026-01-01T00:00:00Z"}
	p, _ = look{handlers: typed(handler.OnMisfit(handler.Release)), object: deleted, held: true}.plan(t)
	if len(p.Misfits) != 1 || !p.Cycle.Progress.Done() {
		t.Errorf("the deletion waits for %+v", p.Misfits)
	}
}

// A handler that the deletion does not wait for is never due.
func TestVerdictsTellMisfitsThatWaitFromThoseThatAreSkipped(t *testing.T) {
	deleted := m{"spec": m{"hostNetwork": "yes"}, "deletionTimestamp": "2026-01-01T00:00:00Z"}
	attempt := map[string]storage.Record{"delete": {Started: time.Now(), Purpose: cause.Delete, Retries: 1}}
	handled := m{"spec": m{"hostNetwork": "yes"}}
	with := func(options ...handler.ChangeOption) func(r *registry.Registry) {
		return func(r *registry.Registry) {
			typed(options...)(r)
			r.Add(handler.Delete(kexes, handlertest.Function(func(context.Context, *handler.Call) error { return nil }), handler.ID("other")))
		}
	}
	for name, test := range map[string]struct {
		look look
		want verdict.State
	}{
		"the deletion waits":           {look{handlers: with(), object: deleted, base: handled, held: true}, verdict.Misfit},
		"it does not":                  {look{handlers: with(handler.OnMisfit(handler.Release)), object: deleted, base: handled, held: true}, verdict.Skipped},
		"it does not after an attempt": {look{handlers: with(), object: deleted, held: true, records: attempt}, verdict.Skipped},
	} {
		p, c := test.look.plan(t)
		for _, d := range c.Handlers.Changing {
			got := p.Verdict(d, requests.Suspension{}, time.Now())
			if d.ID == "delete" && (got.State != test.want || !strings.Contains(got.Message, "hostNetwork")) || d.ID == "other" && got.State != verdict.Due {
				t.Errorf("%s: got %+v", name, got)
			}
		}
	}
}

// Some handlers find out when they are called. Each is named once.
func TestAllMisfitsIncludeThoseOfCalls(t *testing.T) {
	err := &handler.MisfitError{Type: "*v1.Pod", Err: errors.New("no number")}
	progress := func(ids ...string) *call.Progress {
		p := call.NewProgress(func(string) *storage.Record { return nil })
		for _, id := range ids {
			p.SetMisfit(id, err)
		}
		return p
	}
	fits, before, during, calls := &handler.Declaration{ID: "fits"}, &handler.Declaration{ID: "before"}, &handler.Declaration{ID: "during"}, &handler.Declaration{ID: "calls"}
	p := &Plan{
		Handlers: registry.Handlers{before, during, fits}, Misfits: []Misfit{{before, err, true}},
		Cycle: &record.Cycle{Progress: progress("before", "during")},
	}
	for _, test := range []struct {
		calls *record.Calls
		want  []*handler.Declaration
	}{
		{nil, []*handler.Declaration{before, during}},
		{&record.Calls{Handlers: registry.Handlers{calls, fits}, Progress: progress("calls")}, []*handler.Declaration{before, during, calls}},
	} {
		got := p.AllMisfits(test.calls)
		if len(got) != len(test.want) {
			t.Fatalf("got %+v", got)
		}
		for i, misfit := range got {
			if misfit.Handler != test.want[i] || !misfit.Waits {
				t.Errorf("got %+v", misfit)
			}
		}
	}
	if got := (&Plan{}).AllMisfits(nil); len(got) > 0 || len(p.Misfits) != 1 {
		t.Errorf("got %+v", got)
	}
}
