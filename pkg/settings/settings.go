package settings

import (
	"time"

	"github.com/kopf-go/kopf/pkg/backoff"
	"github.com/kopf-go/kopf/pkg/lifecycles"
	"github.com/kopf-go/kopf/pkg/storage"
)

// Settings configure one operator. Its zero value is a complete configuration.
// An operator copies it when it starts.
type Settings struct {
	// Name is the value of the label "operator" in all metrics. If another operator
	// in the process already has the name, a number is appended. Default: none; the
	// metrics then use DefaultName.
	Name string

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
	Replicas    Replicas
	Health      Health
	Metrics     Metrics
	Admission   Admission
}

// Persistence is how the operator keeps its state on the objects.
type Persistence struct {
	// Finalizer holds objects for which deletion handlers are declared.
	// Default: DefaultFinalizer, the one of Kopf, so that either can take over.
	Finalizer string
	// DiffBase keeps the essence that was handled last.
	// Default: an annotation, as Kopf does.
	DiffBase storage.DiffBase
	// Progress keeps how far the handlers are.
	// Default: annotations; records that an old Kopf left in the status are read.
	Progress storage.Progress
	// ConsistencyTimeout is how long to wait for the watch to bring the
	// operator's own last write before the object is read directly.
	// Default: DefaultConsistencyTimeout.
	ConsistencyTimeout time.Duration
}

// Execution is how handlers are called.
type Execution struct {
	// Backoff is the pause before the next attempt of a handler after a regular error,
	// for handlers that declare none: backoff.Constant or backoff.Exponential.
	// Default: backoff.Constant(DefaultBackoff); an environment needs time to recover.
	Backoff backoff.Backoff
	// CheckpointInterval is how long a pass over an object may run before what is done
	// is persisted between two handlers. Default: DefaultCheckpointInterval: what takes
	// longer than a second is not to be repeated after a crash, and what is
	// shorter is not worth a write.
	CheckpointInterval time.Duration
	// Lifecycle chooses the handlers of one pass. Default: lifecycles.AllAtOnce.
	Lifecycle lifecycles.Lifecycle
	// Workers is how many objects are handled at the same time.
	// Default: DefaultWorkers; a slow handler holds up one of them.
	Workers int
	// GracePeriod is how long running handlers may go on when the operator
	// stops. Default: DefaultGracePeriod, less than the 30 seconds that
	// Kubernetes gives to a pod.
	GracePeriod time.Duration
	// ShutdownTimeout is how long the operator may take to stop in all, cleanup handlers
	// included. What has not stopped by then is abandoned, with an error.
	// Default: DefaultShutdownTimeout; a person has long given up by then, and Kubernetes
	// has killed the pod.
	ShutdownTimeout time.Duration
}

// Background is how daemons and timers are run.
type Background struct {
	// CancellationPolling is how often a warning says that a daemon was asked to
	// stop and does not, if the daemon has no interval of its own.
	// Default: DefaultCancellationPolling, often enough for a person who waits for
	// the object to go, and rare enough for the log.
	CancellationPolling time.Duration
}

// Queueing is how the changes of an object wait for their turn.
type Queueing struct {
	// ErrorDelays are the pauses after consecutive errors of the operator itself
	// or of the API over one object; the last one repeats.
	// Default: Fibonacci numbers from 1 second to 10 minutes. An empty, non-nil
	// list disables the pauses.
	ErrorDelays []time.Duration
	// ContentionDelays are the pauses of an object after each time that another client
	// has undone what the operator has written, once that happens again and again
	// in quick succession; the last one repeats. Default: DefaultContentionDelays, from
	// 1 second to 5 minutes: a dispute does no harm then, and its end is noticed. An
	// empty, non-nil list disables the guard.
	ContentionDelays []time.Duration
	// EventBacklog is how many watch events of one object wait for its event
	// handlers before the oldest modifications are merged.
	// Default: DefaultEventBacklog.
	EventBacklog int
}
