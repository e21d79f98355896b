package write

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-go/kopf/pkg/metrics"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/contention"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/record"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/report"
)

// API is what the writer needs of the API server, for one resource.
type API interface {
	// Get reads an object, live.
	Get(ctx context.Context, name types.NamespacedName) (*object.Snapshot, error)
	// Patch applies a merge patch to an object or one of its subresources, and
	// returns the object as it is afterwards. It must not repeat a write that may
	// have been committed.
	Patch(ctx context.Context, name types.NamespacedName, subresource string, merge []byte) (*object.Snapshot, error)
	// DryRun returns the error that Patch would return for the content.
	DryRun(ctx context.Context, name types.NamespacedName, subresource string, merge []byte) error
	// ManagedFields returns who has written which fields of an object.
	ManagedFields(ctx context.Context, name types.NamespacedName) ([]metav1.ManagedFieldsEntry, error)
}

// Target is the object that a session writes to.
type Target struct {
	Key object.Key
	API API
	// StatusSubresource: the status is written apart from the rest.
	StatusSubresource bool
}

// Config is what a Writer needs.
type Config struct {
	Records record.Keeper
	// ConsistencyTimeout is how long a session waits for the watch to show the last
	// write, before the object is read directly.
	ConsistencyTimeout time.Duration
	// ContentionDelays are the pauses after writes that others undo.
	ContentionDelays []time.Duration
	Metrics          *metrics.Metrics // nil: no metrics
}

// Writer writes to the objects of one engine. It is safe for concurrent use, with one
// session per object at a time.
type Writer struct {
	Config

	contention *contention.Detector[identity]
}

// identity is an object that was written to; another one of its name begins anew.
type identity struct {
	object.Key
	uid types.UID
}

// New makes a Writer.
func New(config Config) *Writer {
	return &Writer{Config: config, contention: contention.New[identity](config.ContentionDelays)}
}

// finalizer returns the name of the operator's finalizer.
func (w *Writer) finalizer() string { return w.Records.Storages.Finalizer }

// Open begins a pass over an object.
func (w *Writer) Open(s *State, t Target, r report.Reporter) *Session {
	return &Session{writer: w, state: s, target: t, report: r}
}

// ContentionDelay returns for how long the object must be left alone because others
// undo what is written to it. A deletion does not wait.
func (w *Writer) ContentionDelay(key object.Key, snapshot *object.Snapshot) time.Duration {
	delay := w.contention.Delay(identity{key, snapshot.GetUID()})
	if delay > 0 && snapshot.Deleting() {
		return 0
	}
	return delay
}
