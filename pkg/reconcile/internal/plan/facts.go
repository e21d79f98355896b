package plan

import (
	"slices"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/internal/registry"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/record"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/requests"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/revision"
)

// Facts is everything that a plan depends on.
type Facts struct {
	Key object.Key
	// Arguments are the arguments of filters. Their Body is the object.
	Arguments handler.CallContext
	// Stored contains what is stored on the object. A plan changes its Progress.
	Stored   record.Stored
	Memory   Memory
	Handlers *Handlers
	// HasFinalizer is set if the object has the finalizer of the operator.
	HasFinalizer bool
	// Requests reads the requests of people. Nil ignores them.
	Requests *requests.Reader
	// Revisions knows the rollouts. Nil means that there are none.
	Revisions *revision.Reviser
}

// Memory contains what the process knows about an object. The zero value is that of an object that has appeared while
// the process runs.
type Memory struct {
	// Initial is set if the object is older than the process, which has not handled it yet.
	Initial bool
	// HasResumed reports whether the process has called a resume handler, so that it is not called
	// again. Nil means that it has called none.
	HasResumed func(id string) bool
	// DaemonsRunning is set if daemons must end before the object can be deleted.
	DaemonsRunning bool
	// NeedsFinalizer reports whether a matching daemon or timer needs the finalizer. Nil means that none
	// has been started yet, so that all daemons do.
	NeedsFinalizer func(d *handler.Declaration) bool
}

// Handlers are the handlers of one resource, sorted by what they are called for.
type Handlers struct {
	Declared registry.Handlers // all
	Changing registry.Handlers
	IDs      []string // of the change handlers
	// Sequences contains the ids of change handlers that follow each other.
	Sequences [][]string
	// Background contains the daemons and timers.
	Background registry.Handlers
	// Triggered contains the handlers that are called for what happens to other objects.
	Triggered registry.Handlers
	// Revised contains the handlers that have a revision, one declaration of each.
	Revised registry.Handlers
	// Unserved contains the deletion handlers of other versions, which are not called.
	Unserved registry.Handlers
	// Fields are the fields that handlers name, except indices. They belong to the
	// essence even if they are in the status, as in Kopf.
	Fields []object.Path
	// HasConditions is set if the status has conditions about the outcomes of the handlers.
	HasConditions bool
}

// Sort sorts the handlers of a resource.
func Sort(all registry.Handlers) *Handlers {
	h := &Handlers{
		Declared:      all,
		Changing:      all.Where(func(d *handler.Declaration) bool { return d.Kind.IsChange() }),
		Background:    all.Where(func(d *handler.Declaration) bool { return d.Kind.IsBackground() }),
		Triggered:     all.Where(func(d *handler.Declaration) bool { return d.Kind.IsTriggered() }),
		HasConditions: len(all.OfKind(handler.Conditions)) > 0,
	}
	h.IDs = IDsOf(h.Changing)
	h.Sequences = h.Changing.Sequences()
	h.Revised = revision.Declared(h.Changing)
	for _, d := range all {
		isKnown := slices.ContainsFunc(h.Fields, func(p object.Path) bool { return slices.Equal(p, d.Field) })
		if d.Kind.ExtendsEssence() && d.Field != nil && !isKnown {
			h.Fields = append(h.Fields, d.Field)
		}
	}
	return h
}

// Only returns some of the handlers. The fields that the others name still belong to the essence, and their
// records still have a handler.
func (h *Handlers) Only(kept func(*handler.Declaration) bool) *Handlers {
	rest := Sort(h.Declared.Where(kept))
	rest.Declared = h.Declared
	rest.IDs = h.IDs
	rest.Fields = h.Fields
	rest.HasConditions = h.HasConditions
	return rest
}

// IDsOf returns the ids of handlers in their order.
func IDsOf(handlers registry.Handlers) []string {
	var ids []string
	for _, d := range handlers {
		ids = append(ids, d.ID)
	}
	return ids
}

// RunsOf returns the ids of the records of timers with schedules.
func RunsOf(background registry.Handlers) []string {
	var ids []string
	for _, d := range background {
		if d.Schedule != nil {
			ids = append(ids, record.RunOf(d.ID))
		}
	}
	return ids
}
