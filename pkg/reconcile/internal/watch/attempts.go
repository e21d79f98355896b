package watch

import (
	"strings"
	"sync"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kopf-go/kopf/pkg/internal/relist"
	"github.com/kopf-go/kopf/pkg/metrics"
)

// Attempts are those to list and watch the objects of one stream: they are logged when they begin
// to fail, and when that ends. They are safe for concurrent use.
type Attempts struct {
	Log      logr.Logger
	Metrics  *metrics.Metrics // nil disables metrics
	Resource string           // in the metrics
	Messages *Messages

	mu  sync.Mutex
	err error // of the last attempt; nil if it is watched
}

// Messages are the words of the log about what is watched. Users search for them, so they are whole.
type Messages struct{ notYet, notNow, again string }

// ofObjects are the messages about the objects of the handlers.
var ofObjects = Messages{
	notYet: "The objects cannot be watched yet; this is retried.",
	notNow: "The objects cannot be watched now; this is retried.",
	again:  "The objects are watched again.",
}

// OfChildren are the messages about the children of objects.
var OfChildren = Messages{
	notYet: "The children cannot be watched yet; this is retried.",
	notNow: "The children cannot be watched now; this is retried.",
	again:  "The children are watched again.",
}

// Note records an attempt; nil means that a watch has begun.
func (a *Attempts) Note(err error) {
	if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
		a.Log.V(1).Info("The watch was interrupted, and is restarted.", "reason", err.Error())
		a.Metrics.Restart(a.Resource, metrics.Interrupted)
		return
	}
	if err != nil {
		a.Metrics.Restart(a.Resource, metrics.Unavailable)
	}
	switch isNew, recovered := a.store(err); {
	case recovered:
		a.Log.Info(a.Messages.again)
	case isNew && isNotReady(err):
		a.Log.Info(a.Messages.notYet, "reason", err.Error())
	case isNew:
		a.Log.Error(err, a.Messages.notNow)
	}
}

// Interrupted records that a watch was interrupted, so that the objects are listed again.
func (a *Attempts) Interrupted(reason error) {
	if relist.IsSilence(reason) {
		a.Log.Info("The watch has delivered nothing for too long, and is restarted with a list.")
	} else {
		a.Log.V(1).Info("The watch was interrupted, and is restarted with a list.", "reason", reason.Error())
	}
	a.Metrics.Restart(a.Resource, metrics.Interrupted)
}

// Rewound records that a list belongs to another history of the cluster.
func (a *Attempts) Rewound(version string) {
	a.Log.Info("The versions of the objects have gone back: the cluster was restored from a backup, or another one has taken its place. What is known of their versions is forgotten.", "version", version)
	a.Metrics.Restart(a.Resource, metrics.Rewound)
}

// store stores the error of the last attempt. It reports whether the error is new, and whether an
// earlier one has ended. The texts of network errors differ with every attempt, so only a different
// response of the server counts as a different error.
func (a *Attempts) store(err error) (isNew, recovered bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	before := a.err
	a.err = err
	return err != nil && (before == nil || apierrors.ReasonForError(before) != apierrors.ReasonForError(err)), err == nil && before != nil
}

// Err returns why the watch does not continue, or nil if it does.
func (a *Attempts) Err() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.err
}

// MayBeRemoved reports whether the resource may not be served anymore in its version.
func (a *Attempts) MayBeRemoved() bool { return mayBeRemoved(a.Err()) }

func mayBeRemoved(err error) bool {
	return apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err)
}

// isNotReady reports whether the resource is not served yet, or the API server still prepares
// its storage. Both are normal when a definition was just installed.
func isNotReady(err error) bool {
	return apierrors.IsNotFound(err) ||
		(apierrors.IsTooManyRequests(err) || apierrors.IsServiceUnavailable(err)) && strings.Contains(err.Error(), "initializing")
}
