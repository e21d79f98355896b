package write

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-go/kopf/pkg/metrics"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/record"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/report"
)

// API contains the calls of the API server that the writer needs, for one resource.
type API interface {
	// Get reads an object directly.
	Get(ctx context.Context, name types.NamespacedName) (*object.Snapshot, error)
	// Patch applies a merge patch to an object or one of its subresources, and returns
	// the resulting object. It must not repeat a write that may have been committed.
	Patch(ctx context.Context, name types.NamespacedName, subresource string, merge []byte) (*object.Snapshot, error)
	// DryRun returns the error that Patch would return for the content.
	DryRun(ctx context.Context, name types.NamespacedName, subresource string, merge []byte) error
	// Find returns the uid of the object with this name, empty if there is none, and the
	// version of the list that says so. It includes all writes that were committed before.
	Find(ctx context.Context, name types.NamespacedName) (uid types.UID, listed string, err error)
	// ManagedFields returns which writers have written which fields of an object.
	ManagedFields(ctx context.Context, name types.NamespacedName) ([]metav1.ManagedFieldsEntry, error)
}

// Target is the object that a session writes to.
type Target struct {
	Key object.Key
	API API
	// StatusSubresource is set if the status must be written separately.
	StatusSubresource bool
	// Redefined is called when a write shows that this has changed. It can be nil.
	Redefined func(statusSubresource bool)
	// Rewound is called when a response is older than what is known of the object, so that it belongs
	// to another history of the cluster. It can be nil.
	Rewound func()
	// Trace starts the span of a write, and returns its context and its end. It is nil if there are no spans.
	Trace func(ctx context.Context, subresource string, reason metrics.Reason) (context.Context, func(metrics.Answer, error))
	// Observer is told about the writes to the object. It can be nil.
	Observer Observer
}

// Observer is told about the writes to one object.
type Observer interface {
	// BeginWrite is called before a write is sent.
	BeginWrite()
	// EndWrite is called after it, with the version that the write was bound to, and with what it has made of that. This
	// is nil if nothing was written. Without a response, it is what the write makes, which is not certain.
	EndWrite(before, after *object.Body, certain bool)
}

// beginWrite tells the observer that a write begins.
func (t *Target) beginWrite() {
	if t.Observer != nil {
		t.Observer.BeginWrite()
	}
}

// Config contains everything that a Writer needs.
type Config struct {
	Records record.Keeper
	// ConsistencyTimeout limits how long a session waits until the watch shows the last
	// write. Then it reads the object directly.
	ConsistencyTimeout time.Duration
	// Name is the field manager of the operator. It can be empty.
	Name string
	// ContentionDelays are the delays after writes that others have undone.
	ContentionDelays []time.Duration
	Metrics          *metrics.Metrics // nil disables metrics
}

// Writer writes to the objects of one engine. It is safe for concurrent use, with one session
// at a time per object.
type Writer struct {
	Config

	contention *detector
}

// identity identifies a written object, including its uid.
type identity struct {
	object.Key
	uid types.UID
}

// New returns a Writer.
func New(config Config) *Writer {
	return &Writer{Config: config, contention: newDetector(config.ContentionDelays)}
}

// finalizer returns the name of the operator's finalizer.
func (w *Writer) finalizer() string { return w.Records.Storages.Finalizer }

// Open starts the writer's part of a pass over an object.
func (w *Writer) Open(s *State, t Target, r report.Reporter) *Session {
	session := &Session{writer: w, state: s, target: t, report: r}
	session.report.Written = &session.written
	return session
}

// Contended returns the numbers of objects whose writes others undo again and again, by their resources.
func (w *Writer) Contended() map[string]int { return w.contention.counts() }

// ContentionDelay returns how long the object must be left alone because others undo the
// operator's writes. Deletions do not wait.
func (w *Writer) ContentionDelay(key object.Key, snapshot *object.Snapshot) time.Duration {
	delay := w.contention.delay(identity{key, snapshot.GetUID()})
	if delay > 0 && snapshot.Deleting() {
		return 0
	}
	return delay
}
