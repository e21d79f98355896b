package handler

import "github.com/kopf-go/kopf/pkg/model/cause"

// Kind is what a handler reacts to, as it was declared.
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
	// OnValidate and OnMutate are called by the API server, before it stores an
	// object.
	OnValidate Kind = "validate"
	OnMutate   Kind = "mutate"

	// The kinds that are of no object, but of the operator as a whole.

	OnStartup Kind = "startup"
	OnCleanup Kind = "cleanup"
	OnLogin   Kind = "login"
	OnProbe   Kind = "probe"

	// Subhandler is registered by another handler while that one runs.
	Subhandler Kind = "subhandler"
)

// IsChange reports whether handlers of the kind are called for causes, with
// persisted progress. Those of the other kinds have no causes, but the object as
// it is: events and indices for every watch event, the background ones, and those
// of admission for a request.
func (k Kind) IsChange() bool {
	switch k {
	case OnEvent, OnDaemon, OnTimer, OnIndex, OnValidate, OnMutate, OnStartup, OnCleanup, OnLogin, OnProbe:
		return false
	default:
		return true
	}
}

// IsActivity reports whether handlers of the kind belong to the operator, and to no
// object.
func (k Kind) IsActivity() bool {
	switch k {
	case OnStartup, OnCleanup, OnLogin, OnProbe:
		return true
	default:
		return false
	}
}

// IsBackground reports whether handlers of the kind accompany objects, whatever
// happens to these.
func (k Kind) IsBackground() bool { return k == OnDaemon || k == OnTimer }

// ExtendsEssence reports whether the fields of such handlers belong to the essence of the
// object, even if they are in its status. Indices and admission do not count, as in Kopf.
func (k Kind) ExtendsEssence() bool { return k.IsChange() || k.IsBackground() || k == OnEvent }

// IsAdmission reports whether handlers of the kind are called by the API server. They
// need no watch, and keep no progress.
func (k Kind) IsAdmission() bool { return k == OnValidate || k == OnMutate }

// reactsTo reports whether the kind is called for the reason. Field handlers are
// called for any but deletions, which only deletion handlers may hold up;
// resuming ones for any that is initial; sub-handlers for any.
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

// needsChange reports whether the kind is called only when its field has changed.
func (k Kind) needsChange() bool { return k == OnUpdate || k == OnField }
