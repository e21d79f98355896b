package settings

import (
	"time"

	"github.com/kopf-go/kopf/pkg/backoff"
	"github.com/kopf-go/kopf/pkg/lifecycles"
	"github.com/kopf-go/kopf/pkg/storage"
)

// Settings configure one operator. The zero value is a complete configuration. An operator
// copies it when it starts.
type Settings struct {
	// Name tells this operator apart from others. It is the value of the label "operator" in all
	// metrics (if another operator in the process already has the name, a number is appended), the
	// field manager of its writes, and the default of Posting.Component. If it is a valid name of
	// an object, it is also the default of Replicas.LeaseName, and the name of webhook
	// configurations that are not managed. At most 128 bytes. Default: none; the metrics then have
	// the name of the program, and the field manager is DefaultName. Handlers of children (Ensure)
	// need it: it is a part of the identity of the children, so it must stay the same for ever, or
	// become one of FormerNames.
	Name string
	// FormerNames are the names that this operator had before. The children that handlers of
	// Ensure have applied under them remain its children: when it handles their parent, it becomes
	// the owner of their fields with one write to each child. Keep the names here: the children
	// keep their labels. Stop the operator with the former name first. Default: none.
	FormerNames []string

	Scope       Scope
	Scanning    Scanning
	Persistence Persistence
	Execution   Execution
	Background  Background
	Queueing    Queueing
	Posting     Posting
	Networking  Networking
	Watching    Watching
	Peering     Peering
	Requests    Requests
	Replicas    Replicas
	Health      Health
	Metrics     Metrics
	Page        Page
	Admission   Admission
	Recording   Recording
	Permissions Permissions
}

// Permissions configures what the operator finds out about the permissions that it needs.
type Permissions struct {
	// LearnFile is a file with the roles that the operator needs: derived from what it declares,
	// and with what its requests have used besides. It is a lower bound. The operator writes
	// it twice a minute if it has changed, and at the end. An operator in a manager needs
	// kopf.Options.Permissions for that. Default: none.
	LearnFile string
}

// Persistence configures how the operator stores its state on the objects.
type Persistence struct {
	// Finalizer is the name of the finalizer on objects with deletion handlers or daemons.
	// Default: DefaultFinalizer, which is Kopf's, so that either can take over.
	Finalizer string
	// DiffBase stores the essence that was handled last. Default: an annotation, as in Kopf.
	DiffBase storage.DiffBase
	// Progress stores the progress of the handlers. Default: annotations; it also reads the
	// records of old versions of Kopf from the status.
	Progress storage.Progress
	// ConsistencyTimeout is how long the operator waits until the watch delivers the
	// operator's own last write. After that, it reads the object from the API server.
	// Default: DefaultConsistencyTimeout.
	ConsistencyTimeout time.Duration
}

// Execution configures how handlers are called.
type Execution struct {
	// Backoff is the pause before the next attempt of a handler after a regular error,
	// for handlers that declare none: backoff.Constant or backoff.Exponential.
	// Default: backoff.Constant(DefaultBackoff); an environment needs time to recover.
	Backoff backoff.Backoff
	// CheckpointInterval is how long a pass over an object can run before the operator
	// stores the progress between two handlers. Default: DefaultCheckpointInterval: a crash
	// repeats about a second of work, and shorter work is not worth a write.
	CheckpointInterval time.Duration
	// Lifecycle chooses the handlers that run in one pass. Default: lifecycles.AllAtOnce.
	Lifecycle lifecycles.Lifecycle
	// Workers is the number of objects for which the operator itself works at the same time:
	// it detects changes, and writes to the objects. A running handler needs no worker.
	// Default: DefaultWorkers.
	Workers int
	// MaxCalls is the number of calls of handlers that run at the same time, for all objects:
	// each of them keeps its object in memory. One resource can have 80 % of them, so that
	// others need not wait. Daemons and timers do not count. Default: DefaultMaxCalls.
	MaxCalls int
	// GracePeriod is how long the operator waits for running handlers, and writes their
	// outcomes, when it stops. It cancels the handlers 2 seconds before the end, or earlier
	// if there are many objects to write, but not in the first half. Default:
	// DefaultGracePeriod, which is less than the 30 seconds that Kubernetes gives to a pod.
	GracePeriod time.Duration
	// ShutdownTimeout is how long the operator can take to stop in all, including cleanup
	// handlers. After that, it abandons what has not stopped, and returns an error.
	// Default: DefaultShutdownTimeout.
	ShutdownTimeout time.Duration
}

// Background configures how daemons and timers run.
type Background struct {
	// CancellationPolling is the interval of the warnings about a daemon that was asked to
	// stop, but does not, unless the daemon declares one. Default:
	// DefaultCancellationPolling.
	CancellationPolling time.Duration
}

// Requests configures whether people can send requests to the operator by annotations of
// objects: to retry, rerun, or skip a handler, or to suspend an object.
type Requests struct {
	// Disabled ignores requests. Default: false. Whoever may change the annotations of an
	// object may send requests.
	Disabled bool
}

// Queueing configures how objects and their events wait for a worker.
type Queueing struct {
	// ErrorDelays are the pauses of an object after consecutive errors of the operator
	// itself or of the API. The last one repeats. Default: Fibonacci numbers from 1 second
	// to 10 minutes. An empty, non-nil list disables the pauses.
	ErrorDelays []time.Duration
	// ContentionDelays are the pauses of an object while another client repeatedly and
	// quickly reverts what the operator writes. The last one repeats. Default:
	// DefaultContentionDelays, from 1 second to 5 minutes. An empty, non-nil list disables
	// the guard.
	ContentionDelays []time.Duration
	// EventBacklog is the number of watch events of one object that can wait for its event
	// handlers before the operator merges the oldest modifications. Default:
	// DefaultEventBacklog.
	EventBacklog int
}
