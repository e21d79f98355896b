package watch

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/cache"

	"github.com/kopf-go/kopf/pkg/internal/relist"
	"github.com/kopf-go/kopf/pkg/metrics"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/kube"
	"github.com/kopf-go/kopf/pkg/settings"
)

// stream is one watch of one resource, in one namespace or in all of them. A reflector shows it
// objects of the type T, those of one object in order, and it passes them on to a store. Handled
// objects, children, and names differ in their stores and in their requests.
type stream[T versioned, S store[T]] struct {
	kept      S
	namespace string      // empty for all namespaces
	share     *kube.Share // nil: all objects
	attempts  attempts
	history   relist.History // only for the reflector
	// interrupt makes the reflector list the objects again. It does not wait.
	interrupt func()
	// renew makes the reflector watch the objects in another request. It does not wait.
	renew func()

	cancel  context.CancelFunc
	stopped <-chan struct{} // closed when it is no longer wanted; nil: not before the operator stops
	listed  *mark           // the store has all initial objects
	refused *mark           // the initial list is refused: for the lack of a permission, or because of its selectors
	ended   *mark           // there was the last event
	// refresh is like interrupt, but nothing has failed.
	refresh func()

	mu       sync.Mutex
	replaced uint64        // the number of the list that the store has
	changed  chan struct{} // closed when that changes
}

// versioned is an object, or as much of it as is kept.
type versioned interface{ GetResourceVersion() string }

// store keeps what a stream shows. One goroutine changes it.
type store[T versioned] interface {
	// hasNewer reports whether the store has a newer version of an object.
	hasNewer(than T) bool
	// put is called with a new object, or with another version of one.
	put(now T)
	// remove is called with the last version of an object.
	remove(last T)
	// replace is called with a consistent list of all objects. Another is set if the list belongs to another
	// history of the cluster than what the store has.
	replace(all []T, version string, another bool)
}

// newStream returns a stream that no reflector feeds yet.
func newStream[T versioned, S store[T]](namespace string, share *kube.Share, kept S) *stream[T, S] {
	return &stream[T, S]{
		kept: kept, namespace: namespace, share: share, interrupt: func() {}, renew: func() {},
		listed: newMark(), refused: newMark(), ended: newMark(), changed: make(chan struct{}),
		refresh: func() {},
	}
}

// run feeds the stream until the context is done or the function that is called after each end of a
// watch returns true; nil does not. Empty is an object of the type T without content.
func (s *stream[T, S]) run(ctx context.Context, pauses settings.Watching, source *relist.Source, empty T, ends func() bool) {
	defer s.ended.set()
	relist.Run(ctx, pauses, source, empty, s, ends)
}

var (
	_ cache.ReflectorStore         = (*Stream)(nil)
	_ cache.ReflectorBookmarkStore = (*Stream)(nil)
)

// Add is called for a new object.
func (s *stream[T, S]) Add(item any) error { return s.Update(item) }

// Update is called for another version of an object.
func (s *stream[T, S]) Update(item any) error {
	now, ok := item.(T)
	if !ok {
		return nil
	}
	s.history.Advance(now.GetResourceVersion())
	if s.kept.hasNewer(now) {
		s.interrupt()
	}
	s.kept.put(now)
	return nil
}

// Delete is called with the last version of an object that is deleted, or not selected anymore.
func (s *stream[T, S]) Delete(item any) error {
	last, ok := item.(T)
	if !ok {
		return nil
	}
	s.history.Advance(last.GetResourceVersion())
	s.kept.remove(last)
	return nil
}

// Bookmark is called when there is nothing new up to a version.
func (s *stream[T, S]) Bookmark(version string) error {
	s.history.Advance(version)
	return nil
}

// Replace is called with a consistent list of all objects.
func (s *stream[T, S]) Replace(items []any, version string) error {
	another := s.history.Restart(version)
	all := make([]T, 0, len(items))
	for _, item := range items {
		if now, ok := item.(T); ok {
			all = append(all, now)
			another = another || s.kept.hasNewer(now)
		}
	}
	if another {
		s.attempts.log.Info("The versions of the objects have gone back: the cluster was restored from a backup, or another one has taken its place. What is known of their versions is forgotten.", "version", version)
		s.attempts.metrics.Restart(s.attempts.resource, metrics.Rewound)
	}
	s.kept.replace(all, version, another)
	s.share.Complete()
	s.listed.set()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.replaced = s.share.Lists()
	close(s.changed)
	s.changed = make(chan struct{})
	return nil
}

// Resync does nothing.
func (s *stream[T, S]) Resync() error { return nil }

// Listed returns a channel that is closed when the store has all initial objects.
func (s *stream[T, S]) Listed() <-chan struct{} { return s.listed.done }

// refusalPolling is the interval of looking whether a list is refused.
const refusalPolling = time.Second

// listAgain makes the reflector list the objects again, and returns a function that waits for that: until the store has a
// list that begins after this call, or the list is refused. It returns false if the context is done before.
func (s *stream[T, S]) listAgain() (wait func(ctx context.Context) bool) {
	before := s.share.Lists()
	s.refresh()
	return func(ctx context.Context) bool {
		for {
			s.mu.Lock()
			isDone := s.replaced > before
			changed := s.changed
			s.mu.Unlock()
			if isDone || s.attempts.isRefusal(s.attempts.lastError()) { // one resource must not hold up all others
				return true
			}
			select {
			case <-changed:
			case <-s.stopped:
				return true
			case <-s.ended.done:
				return true
			case <-time.After(refusalPolling):
			case <-ctx.Done():
				return false
			}
		}
	}
}

// hasNothing reports whether the error of a list means that there is nothing to handle: the
// resource was removed, the stream was stopped, or it has never shown any objects.
func (s *stream[T, S]) hasNothing(err error) bool {
	select {
	case <-s.stopped:
		return true
	default:
		return apierrors.IsNotFound(err) || s.attempts.isRefusal(err) && !s.listed.isSet()
	}
}

// status returns the state of the watch.
func (s *stream[T, S]) status() Status {
	return Status{Resource: s.attempts.resource, Namespace: s.namespace, Listed: s.listed.isSet(), Err: s.attempts.lastError(), Filter: s.share.Filter()}
}

// Status is the state of one watch.
type Status struct {
	// Resource is the name of the resource, as in keys. Namespace is empty for all namespaces.
	Resource, Namespace string
	// Listed is set if all initial objects are known.
	Listed bool
	// Err is the reason why the watch does not continue, or nil. It is retried.
	Err error
	// Children is set if the watch shows only the children of handlers of Ensure.
	Children bool
	// Filter is who leaves out the objects of other replicas. It is empty without shards.
	Filter kube.Filter
}

// mark is an event that happens at most once. It is safe for concurrent use.
type mark struct {
	once sync.Once
	done chan struct{}
}

func newMark() *mark { return &mark{done: make(chan struct{})} }

func (m *mark) set() { m.once.Do(func() { close(m.done) }) }

func (m *mark) isSet() bool {
	select {
	case <-m.done:
		return true
	default:
		return false
	}
}

// attempts are those to list and watch the objects of one stream: they are logged when they begin
// to fail, and when that ends. They are safe for concurrent use.
type attempts struct {
	log      logr.Logger
	metrics  *metrics.Metrics // nil disables metrics
	resource string           // in the metrics
	messages *messages

	mu  sync.Mutex
	err error // of the last attempt; nil if it is watched
}

// messages are the words of the log about what is watched. Users search for them, so they are whole.
type messages struct {
	notYet, notNow, again string
	// unselectable is for a request whose selectors the API server does not know. Empty: there are none.
	unselectable string
}

var (
	aboutObjects = messages{
		notYet: "The objects cannot be watched yet; this is retried.",
		notNow: "The objects cannot be watched now; this is retried.",
		again:  "The objects are watched again.",
	}
	aboutSelected = messages{
		notYet: aboutObjects.notYet, notNow: aboutObjects.notNow, again: aboutObjects.again,
		unselectable: "The API server refuses the selectors for the objects, so none is watched or handled; this is retried. " +
			"It knows only some fields of each resource: of custom resources, those in selectableFields of the definition, and the name and the namespace. " +
			"Correct settings.Watching.FieldSelectors and LabelSelectors, or select by labels.",
	}
	aboutChildren = messages{
		notYet: "The children cannot be watched yet; this is retried.",
		notNow: "The children cannot be watched now; this is retried.",
		again:  "The children are watched again.",
	}
)

// record records an attempt; nil means that a watch has begun.
func (a *attempts) record(err error) {
	if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
		a.log.V(1).Info("The watch was interrupted, and is restarted.", "reason", err.Error())
		a.metrics.Restart(a.resource, metrics.Interrupted)
		return
	}
	if err != nil {
		a.metrics.Restart(a.resource, metrics.Unavailable)
	}
	isNew, recovered := a.replaceError(err)
	switch {
	case recovered:
		a.log.Info(a.messages.again)
	case isNew && a.isUnselectable(err):
		a.log.Error(err, a.messages.unselectable)
	case isNew && isNotReady(err):
		a.log.Info(a.messages.notYet, "reason", err.Error())
	case isNew:
		a.log.Error(err, a.messages.notNow)
	}
}

// isUnselectable reports whether the API server does not know the selectors of a request.
func (a *attempts) isUnselectable(err error) bool {
	return a.messages != nil && a.messages.unselectable != "" && apierrors.IsBadRequest(err)
}

// isRefusal reports whether a request will fail until a person changes something.
func (a *attempts) isRefusal(err error) bool {
	return apierrors.IsForbidden(err) || a.isUnselectable(err)
}

// interrupted records that a watch was interrupted, so that the objects are listed again.
func (a *attempts) interrupted(reason error) {
	if relist.IsSilence(reason) {
		a.log.Info("The watch has delivered nothing for too long, and is restarted with a list.")
	} else {
		a.log.V(1).Info("The watch was interrupted, and is restarted with a list.", "reason", reason.Error())
	}
	a.metrics.Restart(a.resource, metrics.Interrupted)
}

// replaceError stores the error of the last attempt. It reports whether the error is new, and whether an
// earlier one has ended. The texts of network errors differ with every attempt, so only a different
// response of the server counts as a different error.
func (a *attempts) replaceError(err error) (isNew, recovered bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	before := a.err
	a.err = err
	return err != nil && (before == nil || apierrors.ReasonForError(before) != apierrors.ReasonForError(err)), err == nil && before != nil
}

// lastError returns why the watch does not continue, or nil if it does.
func (a *attempts) lastError() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.err
}

// mayBeRemoved reports whether an error means that the resource may not be served anymore in its version.
func mayBeRemoved(err error) bool {
	return apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err)
}

// isNotReady reports whether the resource is not served yet, or the API server still prepares
// its storage. Both are normal when a definition was just installed.
func isNotReady(err error) bool {
	return apierrors.IsNotFound(err) ||
		(apierrors.IsTooManyRequests(err) || apierrors.IsServiceUnavailable(err)) && strings.Contains(err.Error(), "initializing")
}
