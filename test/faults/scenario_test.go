package faults

import (
	"context"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/kopf"
)

// scenario is the life of an object and its handlers.
type scenario struct {
	kind    string // KopfExample if empty
	declare func(d declarations)
	// steps are the stages; lifeCycle if empty.
	steps []stage
	// ids are all change handlers; results are those with results.
	ids     []string
	results results
	// added are the fields of the status that handlers write which are called only if
	// another client changes the object.
	added []string
	// repeated are the fields of the status that every operator may write, and again
	// if its predecessor has died too early.
	repeated []string
	// check checks the object at the end of every stage.
	check func(now state) error
	// checkpoint is Settings.Execution.CheckpointInterval.
	checkpoint time.Duration
	// grace is Settings.Execution.GracePeriod: a dead operator tries to write for as
	// long.
	grace time.Duration
	// holds is set if there are deletion handlers.
	holds bool
	// named is set if the operator has a name, as handlers of children need it.
	named bool
	// special scenarios have a particular purpose, and skip unrelated faults.
	special bool
	// selective is set if the update handlers do not see all changes.
	selective bool
}

// results are the ids of handlers with results, by the kind of the cycle.
type results struct{ create, update, delete []string }

func (r results) has(id string) bool {
	return slices.Contains(slices.Concat(r.create, r.update, r.delete), id)
}

func (s *scenario) kindName() string {
	if s.kind == "" {
		return "KopfExample"
	}
	return s.kind
}

// resource returns the plural of the kind.
func (s *scenario) resource() string {
	name := strings.ToLower(s.kindName())
	if strings.HasSuffix(name, "s") {
		return name + "es"
	}
	return name + "s"
}

func (s *scenario) stages() []stage {
	if s.steps == nil {
		return []stage{creation, update, deletion}
	}
	return s.steps
}

// declarations collects the handlers of a scenario for one operator.
type declarations struct {
	operator *operator
	registry *kopf.Registry
	resource kopf.Selector
}

func (d declarations) onCreate(id string, fn func(context.Context, *kopf.Change) error) {
	d.registry.OnCreate(d.resource, d.operator.handle(id, fn), kopf.ID(id))
}

// onCreateAndResume declares one function for both causes.
func (d declarations) onCreateAndResume(id string, fn func(context.Context, *kopf.Change) error) {
	handler := d.operator.handle(id, fn)
	d.registry.OnCreate(d.resource, handler, kopf.ID(id))
	d.registry.OnResume(d.resource, handler, kopf.ID(id))
}

func (d declarations) onUpdate(fn func(context.Context, *kopf.Change) error, options ...kopf.ChangeOption) {
	d.registry.OnUpdate(d.resource, d.operator.handle("update", fn), append(options, kopf.ID("update"))...)
}

func (d declarations) onDelete(id string, fn func(context.Context, *kopf.Change) error) {
	d.registry.OnDelete(d.resource, d.operator.handle(id, fn), kopf.ID(id))
}

func (d declarations) onResume(id string, fn func(context.Context, *kopf.Change) error, options ...kopf.ChangeOption) {
	d.registry.OnResume(d.resource, d.operator.handle(id, fn), append(options, kopf.ID(id))...)
}

// stage is one change by a user, and its expected result.
type stage struct {
	name    string
	reason  kopf.Reason // of the handling cycle; empty for none or the deletion
	act     func(r *run)
	reached func(r *run, now state) bool
}

// The stages of most scenarios.
var (
	creation = stage{name: "creation", reason: kopf.ReasonCreate, reached: handled, act: func(r *run) {
		r.do(cluster.Client().Create(r.t.Context(), r.object.DeepCopy()))
	}}
	update = stage{name: "update", reason: kopf.ReasonUpdate, reached: handled, act: func(r *run) {
		r.do(cluster.Client().Patch(r.t.Context(), r.object.DeepCopy(), merge(`{"spec":{"field":"new"}}`)))
	}}
	deletion = stage{name: "deletion", reached: gone, act: func(r *run) {
		r.do(cluster.Client().Delete(r.t.Context(), r.object.DeepCopy()))
	}}
	// restart replaces all operators gracefully.
	restart = stage{name: "restart", reached: resumed, act: func(r *run) {
		for _, o := range r.operators {
			o.process.Stop()
		}
		r.operators = nil
		r.start()
	}}
	// held is a deletion that another client's finalizer holds, and freed ends it.
	held  = stage{name: "deletion", reached: released, act: deletion.act}
	freed = stage{name: "release", reached: gone, act: func(r *run) { r.letGo(firstFinalizer) }}
)

func handled(_ *run, now state) bool { return now.body != nil && now.handled() }

func gone(_ *run, now state) bool { return now.body == nil }

func released(_ *run, now state) bool { return now.released() }

// resumed reports whether the newest operator has called its handlers.
func resumed(r *run, now state) bool {
	newest := len(r.operators) - 1
	return newest >= 0 && handled(r, now) && r.history.hasCalled(r.operators[newest].name)
}

func (r *run) do(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

func merge(text string) client.Patch {
	return client.RawPatch(types.MergePatchType, []byte(text))
}
