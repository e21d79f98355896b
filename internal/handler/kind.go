package handler

import "github.com/kopf-go/kopf/pkg/model/cause"

// Kind is the declared kind of a handler.
type Kind string

// The kinds of handlers.
const (
	OnCreate Kind = "create"
	OnUpdate Kind = "update"
	OnDelete Kind = "delete"
	OnResume Kind = "resume"
	OnField  Kind = "field"
	OnEvent  Kind = "event"
	OnDaemon Kind = "daemon"
	OnTimer  Kind = "timer"
	OnIndex  Kind = "index"
	// OnChild handlers are called for parents when their children change.
	OnChild Kind = "child"
	// OnRestore handlers restore children that a handler ensures, after another client has changed
	// them. Records and metrics contain the text of the kind, so it keeps the former word.
	OnRestore Kind = "disturbance"
	// OnDrift handlers decide about what others change in children that a handler ensures. They
	// are a part of the calls of that handler.
	OnDrift Kind = "drift"
	// The API server calls handlers of OnValidate and OnMutate before it stores an object.
	OnValidate Kind = "validate"
	OnMutate   Kind = "mutate"

	// The kinds that belong to the operator itself, not to objects.

	OnStartup Kind = "startup"
	OnCleanup Kind = "cleanup"
	OnLogin   Kind = "login"
	OnProbe   Kind = "probe"

	// Subhandler is registered by another handler while that handler runs.
	Subhandler Kind = "subhandler"

	// Conditions declares that the status of the objects has the standard conditions. It has
	// no function.
	Conditions Kind = "conditions"
)

// noun names a handler of the kind in messages.
func (k Kind) noun() string {
	switch k {
	case Subhandler:
		return "sub-handler"
	case Conditions:
		return "declaration"
	default:
		return string(k) + " handler"
	}
}

// IsChange reports whether handlers of the kind are called for causes, with persisted progress.
// Other kinds have no causes. Events and indices are called for every watch event, background
// handlers while the object exists, and triggered handlers for what happens to other objects.
// Handlers of drift are called within calls of others, and admission handlers for requests.
func (k Kind) IsChange() bool {
	switch k {
	case OnEvent, OnDaemon, OnTimer, OnIndex, OnChild, OnRestore, OnDrift, OnValidate, OnMutate, OnStartup, OnCleanup, OnLogin, OnProbe, Conditions:
		return false
	default:
		return true
	}
}

// IsActivity reports whether handlers of the kind belong to the operator itself, not to
// objects.
func (k Kind) IsActivity() bool {
	switch k {
	case OnStartup, OnCleanup, OnLogin, OnProbe:
		return true
	default:
		return false
	}
}

// IsBackground reports whether handlers of the kind run in the background of objects.
func (k Kind) IsBackground() bool { return k == OnDaemon || k == OnTimer }

// IsTriggered reports whether handlers of the kind are called for what happens to other
// objects. They are retried with a record on their own object.
func (k Kind) IsTriggered() bool { return k == OnChild || k == OnRestore }

// ExtendsEssence reports whether the fields of such handlers belong to the essence of
// the object, even if they are in its status. Indices and admission handlers do not
// count, as in Kopf.
func (k Kind) ExtendsEssence() bool { return k.IsChange() || k.IsBackground() || k == OnEvent }

// IsAdmission reports whether the API server calls handlers of the kind. They need no
// watch, and have no progress.
func (k Kind) IsAdmission() bool { return k == OnValidate || k == OnMutate }

// reactsTo reports whether the kind is called for the reason. Field handlers are called
// for all reasons except deletions, which only deletion handlers can delay; resume
// handlers for all initial causes; sub-handlers for all reasons.
func (k Kind) reactsTo(reason cause.Reason, initial bool) bool {
	switch k {
	case OnCreate, OnUpdate, OnDelete:
		return string(k) == string(reason)
	case OnResume:
		return initial
	case OnField:
		return reason != cause.Delete
	default:
		return true
	}
}

// TakesPartWith reports whether handlers of both kinds can be called for the same change.
func (k Kind) TakesPartWith(other Kind) bool {
	for _, reason := range []cause.Reason{cause.Create, cause.Update, cause.Delete, cause.Resume} {
		isInitial := reason != cause.Create // an object that is new to the process can be resumed, besides what has happened to it
		if k.reactsTo(reason, isInitial) && other.reactsTo(reason, isInitial) {
			return true
		}
	}
	return false
}

// needsChange reports whether the kind is called only if its field has changed.
func (k Kind) needsChange() bool { return k == OnUpdate || k == OnField }
