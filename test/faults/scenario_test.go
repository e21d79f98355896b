package faults

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/kopf"
)

// scenario is the life of an object, and the handlers that take part in it.
type scenario struct {
	kind    string // KopfExample if empty
	declare func(d declarations)
	// steps are the stages; lifeCycle if empty.
	steps []stage
	// ids are all changing handlers; results those of them with results.
	ids     []string
	results results
	// added are the fields of the status that handlers write which would not be
	// called if nobody else changed the object.
	added []string
	// repeated are the fields of the status that every operator may write for
	// itself, and again if its predecessor has died too early.
	repeated []string
	// check looks at the object at the end of every stage.
	check func(now state) error
	// checkpoint is Settings.Execution.CheckpointInterval.
	checkpoint time.Duration
	// grace is Settings.Execution.GracePeriod: what a dead operator wants to write
	// is waited for until then.
	grace time.Duration
	// holds: there are deletion handlers.
	holds bool
	// special: it is there for something in particular, and spared those faults
	// that have nothing to do with that.
	special bool
	// selective: the update handlers do not look at everything.
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

// resource is the plural of the kind.
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

// declarations takes the handlers of a scenario, for one operator.
type declarations struct {
	operator *operator
	registry *kopf.Registry
	resource kopf.Selector
}

func (d declarations) onCreate(id string, fn kopf.ChangeFunc) {
	d.registry.OnCreate(d.resource, d.operator.handle(id, fn), kopf.ID(id))
}

// onCreateAndResume declares one function for both.
func (d declarations) onCreateAndResume(id string, fn kopf.ChangeFunc) {
	handler := d.operator.handle(id, fn)
	d.registry.OnCreate(d.resource, handler, kopf.ID(id))
	d.registry.OnResume(d.resource, handler, kopf.ID(id))
}

func (d declarations) onUpdate(fn kopf.ChangeFunc, options ...kopf.UpdateOption) {
	d.registry.OnUpdate(d.resource, d.operator.handle("update", fn), append(options, kopf.ID("update"))...)
}

func (d declarations) onDelete(id string, fn kopf.ChangeFunc) {
	d.registry.OnDelete(d.resource, d.operator.handle(id, fn), kopf.ID(id))
}

func (d declarations) onResume(id string, fn kopf.ChangeFunc, options ...kopf.ResumeOption) {
	d.registry.OnResume(d.resource, d.operator.handle(id, fn), append(options, kopf.ID(id))...)
}

// stage is one thing that people do to the object, and what has to come of it.
type stage struct {
	name    string
	reason  kopf.Reason // of the handling cycle; empty: none, or the deletion
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
	// restart replaces all operators in an orderly manner.
	restart = stage{name: "restart", reached: resumed, act: func(r *run) {
		for _, o := range r.operators {
			o.process.Stop()
		}
		r.operators = nil
		r.start()
	}}
	// held is a deletion that somebody else's finalizer holds, and freed its end.
	held  = stage{name: "deletion", reached: released, act: deletion.act}
	freed = stage{name: "release", reached: gone, act: func(r *run) { r.letGo(firstFinalizer) }}
)

func handled(_ *run, now state) bool { return now.body != nil && now.handled() }

func gone(_ *run, now state) bool { return now.body == nil }

func released(_ *run, now state) bool { return now.released() }

// resumed: the newest operator has called its handlers.
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
