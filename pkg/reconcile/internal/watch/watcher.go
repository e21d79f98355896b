// Package watch watches the objects of the resources that handlers select, and the children of their
// objects. It finds the resources and namespaces, starts a stream for each of them, and stops it when
// they disappear. Read it from here: the Watcher decides which streams there are.
//
//	discover → apply → Consumer.SetUp → stream → snapshots     → Consumer.Observe
//	                 → stop streams                            → Consumer.Forget
//	WatchChildren    → Kinds          → stream → shownChildren → Consumer.ObserveChild, ReplaceChildren
//	watchNames                        → stream → names         → discover, apply
//
// A stream is a reflector of client-go that shows objects to a store (stream.go). Streams differ in
// their stores. Handled objects are kept as compact snapshots (snapshots.go); of children, only the
// consumer keeps what it needs (children.go); of namespaces and definitions, there are only the names
// (names.go).
//
// One goroutine, that of Run, starts and stops the streams of handled objects; others can read the current
// ones without waiting for it. Streams of children start when a handler has children of a kind for the
// first time.
//
// Specification: Scopes; Resource specification.
package watch

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/kopf-go/kopf/pkg/internal/relist"
	"github.com/kopf-go/kopf/pkg/internal/sleep"
	"github.com/kopf-go/kopf/pkg/metrics"
	"github.com/kopf-go/kopf/pkg/model/convergence"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/selector"
	"github.com/kopf-go/kopf/pkg/reconcile/discovery"
	"github.com/kopf-go/kopf/pkg/settings"
	"github.com/kopf-go/kopf/pkg/shards"
)

const (
	// startTimeout limits how long the operator waits at its start for an API server that responds with
	// errors, and for the lists of definitions and namespaces.
	startTimeout = 10 * time.Second
	// listedSoon is the time after which the operator says what it waits for at the start.
	listedSoon = 10 * time.Second
	// missingTimeout is when a selector that has matched nothing since the start is reported
	// again, in more detail.
	missingTimeout = time.Minute
	// indexTimeout limits how long handlers wait until the objects of new streams are in the indices,
	// for all of them together.
	indexTimeout = 10 * time.Second
)

// Consumer receives what the watches show.
type Consumer interface {
	// NeedsPatch reports whether the handlers of a resource write to its objects.
	NeedsPatch(found discovery.SelectedResource) bool
	// SetUp prepares for a new resource. The error explains why its objects cannot be
	// handled. It makes no request after the context is done.
	SetUp(ctx context.Context, found discovery.SelectedResource) (*Resource, error)
	// Index handles an event before the store of the stream shows the version to others, so that a
	// pass never sees an object that is not indexed. The deletion of an object is the exception: the
	// store shows it first.
	Index(ctx context.Context, r *Resource, event object.WatchEvent)
	// Observe handles an event after Index, in order for each object. It must return quickly.
	Observe(ctx context.Context, r *Resource, event object.WatchEvent)
	// BeginAnew is called before Observe shows a version of an object that belongs to another history
	// of the cluster than what was known of the object. Observe does not follow if only the history
	// is another one.
	BeginAnew(r *Resource, key object.Key)
	// Forget handles the end of a stream, or of all streams of a resource if the
	// namespace is empty. It returns when all work on the objects has ended, so that
	// the resource can be watched in another version.
	Forget(ctx context.Context, r *Resource, key object.StreamKey)

	// ObserveChild is called with a new version of a child, or with the last one of a child that is gone
	// or has lost its label.
	ObserveChild(child *unstructured.Unstructured, gone bool)
	// ReplaceChildren is called with all the children that a watch covers, as of a version of the list.
	// Without a version, their kind does not exist anymore. Another is set if the list belongs to another
	// history of the cluster than what the watch has shown before.
	ReplaceChildren(covers func(convergence.ChildKey) bool, all []*unstructured.Unstructured, version string, another bool)
	// LeaveChildren is called after Hide, to forget the children of objects that Shows does not report anymore.
	LeaveChildren()
}

// Config contains everything that a Watcher needs.
type Config struct {
	Settings settings.Settings
	Logger   logr.Logger
	// REST and HTTP connect to the cluster.
	REST *rest.Config
	HTTP *http.Client
	// Source returns the resources of the cluster.
	Source discovery.Source
	// Selectors are the selectors of the handlers. Handlers is their number, for the log.
	Selectors []selector.Selector
	Handlers  int
	// Places returns where the handlers with a selector are declared, for the log. It can be nil.
	Places   func(selector.Selector) []string
	Consumer Consumer
	// Division is how the objects are divided among replicas.
	Division shards.Division
	Metrics  *metrics.Metrics // nil disables metrics
	// Discovered is called with the resources of the cluster, and Scoped with the
	// namespaces that are watched separately, after every discovery. Both can be nil.
	Discovered func(present discovery.Snapshot)
	Scoped     func(namespaces []string)
}

// Watcher starts and stops the streams of one operator. Run is called once.
type Watcher struct {
	Config
	// Kinds finds the resources of children.
	Kinds *Kinds

	shown   shown
	indexed barrier
	begun   atomic.Bool // the streams were started
	listed  *mark       // all resources are known, and listed unless that is refused

	rediscover signal // the cluster may serve other resources now
	reapply    signal // other streams may be needed now
	problems   *problems
	running    sync.WaitGroup

	// Only the goroutine of Run uses these fields.
	tracker  discovery.Tracker
	schedule discovery.ScanSchedule
	complete bool // the last discovery has found everything
	wanted   []discovery.SelectedResource
	scope    []string // the namespaces currently in scope
	// definitions and namespaces are nil while they are not watched.
	definitions, namespaces *nameStream

	// startup is how long it took to list all objects, in nanoseconds; 0 until then.
	startup atomic.Int64

	mu sync.Mutex
	// active are the watched resources, which only the goroutine of Run changes.
	active map[string]*Resource
	// stopping contains the resources and streams that are being stopped.
	stopping map[string]struct{}
	children map[childScope]*ChildStream
	lifetime context.Context // of the streams of children
	cluster  dynamic.Interface
	ended    bool // no stream begins anymore
}

// signal wakes one receiver, however often it is sent.
type signal chan struct{}

func (s signal) send() {
	select {
	case s <- struct{}{}:
	default: // already signaled
	}
}

// New returns a Watcher that is not running yet.
func New(config Config) *Watcher {
	ignored := sync.OnceFunc(func() {
		config.Logger.Info("The API server sends all objects, because it does not know sharded watches (feature gate ShardedListAndWatch); those of other replicas are dropped here.")
	})
	return &Watcher{
		Config: config, shown: shown{division: config.Division, ignored: ignored}, Kinds: &Kinds{Source: config.Source}, listed: newMark(),
		rediscover: make(signal, 1), reapply: make(signal, 1),
		problems: newProblems(config.Logger, config.Settings.Scanning.Disabled, config.Places),
		schedule: discovery.ScanSchedule{MaxInterval: config.Settings.Scanning.Interval},
		active:   map[string]*Resource{}, stopping: map[string]struct{}{}, children: map[childScope]*ChildStream{},
	}
}

// Listed returns a channel that is closed when all initial objects are known that may be listed.
func (w *Watcher) Listed() <-chan struct{} { return w.listed.done }

// HasBegun reports whether the streams were started.
func (w *Watcher) HasBegun() bool { return w.begun.Load() }

// WaitForIndices waits while a stream that was started late fills indices. It returns false
// if the other channel is closed first.
func (w *Watcher) WaitForIndices(stopping <-chan struct{}) bool { return w.indexed.wait(stopping) }

// Statuses returns the states of the watches of objects and children.
func (w *Watcher) Statuses() (all []Status) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, r := range w.active {
		for _, s := range r.streams.all() {
			all = append(all, s.status())
		}
	}
	for _, s := range w.children {
		status := s.status()
		status.Children = true
		all = append(all, status)
	}
	return all
}

// Startup returns how long Run took to list all objects. It returns 0 until then.
func (w *Watcher) Startup() time.Duration { return time.Duration(w.startup.Load()) }

// Relist lists the objects of a resource again, in every version, and waits until that is done: the API server may
// show other contents of the versions that are known. It is safe for concurrent use.
func (w *Watcher) Relist(ctx context.Context, of schema.GroupResource) {
	w.mu.Lock()
	var waits []chan struct{}
	for _, r := range w.active {
		if r.GVR().GroupResource() != of {
			continue
		}
		for _, s := range r.streams.all() {
			done := make(chan struct{})
			s.kept.relisted.Store(&done)
			s.interrupt()
			waits = append(waits, done)
		}
	}
	w.mu.Unlock()
	for _, done := range waits {
		select {
		case <-done:
		case <-ctx.Done():
			return
		}
	}
}

// Run watches all selected resources and namespaces, as they appear and disappear, until the
// context is done. The client is for the children, and has no cache; it is nil if there are none.
func (w *Watcher) Run(ctx context.Context, cluster dynamic.Interface) error {
	began := time.Now()
	ctx, cancel := context.WithCancel(ctx)
	defer func() {
		cancel()
		w.mu.Lock()
		w.ended = true
		w.mu.Unlock()
		w.running.Wait()
	}()
	w.mu.Lock()
	w.lifetime = ctx
	w.cluster = cluster
	w.mu.Unlock()
	if err := w.begin(ctx); err != nil && ctx.Err() == nil {
		return err
	}
	resources := slices.Sorted(maps.Keys(w.active))
	initial := map[*Stream]string{} // with the names of their resources
	for _, r := range w.active {
		for _, s := range r.streams.all() {
			initial[s] = r.Name
		}
	}
	w.running.Go(func() { w.followChanges(ctx) })
	if !w.waitListed(ctx, initial) {
		return nil // stopped meanwhile
	}
	if w.Handlers == 0 {
		w.Logger.Info("No handler is declared: the operator does nothing. It uses the handlers in kopf.DefaultRegistry, unless Options.Registry is set.")
	}
	w.startup.Store(int64(time.Since(began)))
	w.Logger.Info("The operator is running.", "resources", resources, "namespaces", w.Settings.Scope.Namespaces, "handlers", w.Handlers)
	w.listed.set()
	<-ctx.Done()
	w.Logger.Info("The operator is stopping.")
	return nil
}

// begin starts the first streams. It returns mistakes in declarations as errors, but not
// missing resources.
func (w *Watcher) begin(ctx context.Context) error {
	if err := w.reach(ctx); err != nil {
		return fmt.Errorf("the resources of the cluster cannot be listed: %w", err)
	}
	w.watchForChanges(ctx)
	if w.definitions != nil {
		if err := w.discover(ctx); err != nil { // finds changes from before the watches
			w.complete = false
		}
	}
	w.schedule.FirstScanned(w.complete)
	w.begun.Store(true)
	return w.apply(ctx)
}

// reach waits for the first answer of the API server, which may also be starting.
func (w *Watcher) reach(ctx context.Context) error {
	began := time.Now()
	for {
		failure := w.discover(ctx)
		patience := startTimeout
		if isUnavailable(failure) {
			patience = w.Settings.Networking.StartTimeout
		}
		switch {
		case failure == nil:
			return nil
		case time.Since(began) >= patience:
			return failure
		case w.problems.reported.Changed("start", ""):
			w.Logger.Info("No handler is called yet: the operator waits for the API server, which does not answer.", "reason", failure.Error(), "timeout", patience.String())
		}
		if !sleep.For(ctx, time.Second) {
			return errors.Join(failure, ctx.Err())
		}
	}
}

// isUnavailable reports whether an error is not an answer of an API server that works.
func isUnavailable(err error) bool {
	return apierrors.ReasonForError(err) == metav1.StatusReasonUnknown || apierrors.IsServiceUnavailable(err) ||
		apierrors.IsTooManyRequests(err) || apierrors.IsInternalError(err) || apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err)
}

// waitListed waits for the initial lists, except those of streams that are stopped or refused: one
// resource or namespace without a role, or with a selector that the API server does not know, must not hold up
// all others.
func (w *Watcher) waitListed(ctx context.Context, streams map[*Stream]string) bool {
	soon := time.After(listedSoon)
	for s, resource := range streams {
		for waits := true; waits; {
			waits = false
			select {
			case <-s.Listed():
			case <-s.stopped:
			case <-s.refused.done:
			case <-ctx.Done():
				return false
			case <-soon:
				w.Logger.Info("No handler is called yet: the operator waits for the initial lists of objects.", "resource", resource, "namespace", s.namespace)
				waits = true
			}
		}
	}
	return ctx.Err() == nil
}

// followChanges updates the streams after changes until the context is done.
func (w *Watcher) followChanges(ctx context.Context) {
	late := time.NewTimer(missingTimeout)
	defer late.Stop()
	for {
		pause, isNeeded := w.schedule.Next()
		timer := time.NewTimer(pause)
		due := timer.C
		if !isNeeded || w.Settings.Scanning.Disabled {
			due = nil
		}
		select {
		case <-ctx.Done():
		case <-w.rediscover:
			w.schedule.ScanSoon()
		case <-w.reapply:
			w.problems.reportOnce("", w.apply(ctx))
		case <-due:
			w.watchForChanges(ctx)
			w.problems.reportOnce("The resources of the cluster cannot be listed; this is retried.", w.discover(ctx))
			w.problems.reportOnce("", w.apply(ctx))
			w.schedule.Scanned(w.complete)
		case <-late.C:
			w.problems.reportMissing()
			w.reportUnusedSelectors()
		}
		timer.Stop()
		if ctx.Err() != nil {
			return
		}
	}
}

// discover finds the resources that the selectors select.
func (w *Watcher) discover(ctx context.Context) error {
	w.complete = false
	ctx, cancel := context.WithTimeout(ctx, w.Settings.Networking.RequestTimeout)
	defer cancel()
	present, err := w.Source.Resources(ctx)
	if err != nil {
		return err
	}
	w.Kinds.set(present)
	if w.Discovered != nil {
		w.Discovered(present)
	}
	resolution := discovery.Resolve(w.Selectors, present)
	resolution.Resources = slices.DeleteFunc(resolution.Resources, func(found discovery.SelectedResource) bool {
		isUnpatchable := !found.Can("patch") && !discovery.IsTerminating(found.Resource) && w.Consumer.NeedsPatch(found)
		if isUnpatchable {
			resolution.Warnings = append(resolution.Warnings, &discovery.UnpatchableError{Resource: found})
		}
		return isUnpatchable
	})
	resolution = resolution.InOneVersion(w.Consumer.NeedsPatch)
	w.problems.reportWarnings(resolution.Warnings)
	w.wanted, w.complete = w.tracker.Update(resolution, present)
	if w.complete {
		w.reportUnusedSelectors()
	}
	return nil
}

// reportUnusedSelectors logs the keys of the selectors in the settings that are for no watched resource. What they were
// meant for is watched completely.
func (w *Watcher) reportUnusedSelectors() {
	var watched []selector.Resource
	for _, found := range w.wanted {
		watched = append(watched, found.Resource)
	}
	for _, key := range w.Settings.Watching.UnusedSelectors(watched) {
		const message = "A selector in the settings is for no resource with handlers, and has no effect: compare settings.Watching.LabelSelectors and FieldSelectors with the resources of the handlers."
		if w.problems.reported.Changed(message+key, "") {
			w.Logger.Info(message, "selector", key)
		}
	}
}

// watchForChanges starts to watch definitions and namespaces if wanted and permitted. It
// retries later without permission.
func (w *Watcher) watchForChanges(ctx context.Context) {
	if w.Settings.Scanning.Disabled {
		return
	}
	if w.definitions == nil {
		all := func(*metav1.PartialObjectMetadata) bool { return true }
		w.definitions = w.watchNames(ctx, discovery.CustomResourceDefinitions, all, w.rediscover,
			"Custom resource definitions may not be watched: the operator notices installed, changed, and removed ones late. "+
				"Grant the permissions to list and watch customresourcedefinitions.apiextensions.k8s.io, or disable the scanning.")
	}
	patterns := selector.Namespaces(selector.Namespaces(w.Settings.Scope.Namespaces).Patterns())
	hasPatterns := len(patterns) > 0
	if w.namespaces == nil && hasPatterns {
		inScope := func(namespace *metav1.PartialObjectMetadata) bool {
			return patterns.Match(namespace.Name, namespace.Labels)
		}
		w.namespaces = w.watchNames(ctx, discovery.Namespaces, inScope, w.reapply,
			"Namespaces may not be watched: patterns select none, and only the named namespaces are watched. "+
				"Grant the permissions to list and watch namespaces, or name them.")
	}
	w.schedule.Polling = w.definitions == nil || w.namespaces == nil && hasPatterns
}

// watchNames watches the names of the objects of a resource that matter. It returns nil without permission.
func (w *Watcher) watchNames(ctx context.Context, of schema.GroupVersionResource, wants func(*metav1.PartialObjectMetadata) bool, changed signal, forbidden string) *nameStream {
	access, err := discovery.NewAccess(w.REST, w.HTTP, of)
	if err != nil {
		w.problems.reportOnce("The changes of "+of.Resource+" cannot be watched.", err)
		return nil
	}
	objects, err := metadata.NewForConfigAndClient(w.REST, w.HTTP)
	if err != nil {
		w.problems.reportOnce("The changes of "+of.Resource+" cannot be watched.", fmt.Errorf("%s cannot be watched: %w", of.Resource, err))
		return nil
	}
	asking, cancel := context.WithTimeout(ctx, w.Settings.Networking.RequestTimeout)
	defer cancel()
	for _, verb := range []string{"list", "watch"} {
		permitted, err := access.Permits(asking, verb, "")
		if err != nil {
			break // the requests show it
		}
		if !permitted {
			if w.problems.reported.Changed(forbidden, "") {
				w.Logger.Info(forbidden)
			}
			return nil
		}
	}
	w.problems.reported.Clear(forbidden)
	s := newStream(metav1.NamespaceAll, nil, newNames(wants, changed.send))
	source := relist.NewSource(objects.Resource(of), w.Settings.Networking.RequestTimeout, w.Settings.Watching, nil, func(err error) {
		w.problems.reportOnce("The changes of "+of.Resource+" cannot be watched now; this is retried.", err)
	})
	w.running.Go(func() { s.run(ctx, w.Settings.Watching, source, &metav1.PartialObjectMetadata{}, nil) })
	select {
	case <-s.Listed():
	case <-time.After(startTimeout):
	case <-ctx.Done():
	}
	return s
}

// ReadDefinition reads the definition of a custom resource in the background, and calls the function with it, or with nil
// if the resource has none, or if definitions are not watched. If it cannot be read, the function is not called. It needs no
// permission but that of the watch of definitions: without that watch, and for other resources, it makes no request. Only the goroutine of Run calls it, such as in
// Consumer.SetUp.
func (w *Watcher) ReadDefinition(ctx context.Context, name string, then func(definition map[string]any)) {
	if w.definitions == nil || !w.definitions.kept.has(name) {
		then(nil)
		return
	}
	w.running.Go(func() {
		definition, err := w.readDefinition(ctx, name)
		if err != nil {
			w.Logger.V(1).Info("The definition cannot be read.", "definition", name, "reason", err.Error())
			return
		}
		then(definition)
	})
}

// readDefinition lists one definition, because the role can have the verbs list and watch alone.
func (w *Watcher) readDefinition(ctx context.Context, name string) (map[string]any, error) {
	ctx, cancel := context.WithTimeout(ctx, w.Settings.Networking.RequestTimeout)
	defer cancel()
	api, err := dynamic.NewForConfigAndClient(w.REST, w.HTTP)
	if err != nil {
		return nil, err
	}
	found, err := api.Resource(discovery.CustomResourceDefinitions).List(ctx, metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", name).String()})
	if err != nil {
		return nil, err
	}
	if len(found.Items) != 1 {
		return nil, fmt.Errorf("there are %d", len(found.Items))
	}
	return found.Items[0].Object, nil
}

// namespacesInScope returns the namespaces to watch: the named ones, whether they exist or
// not, and the existing ones that match a pattern.
func (w *Watcher) namespacesInScope() []string {
	found := selector.Namespaces(w.Settings.Scope.Namespaces).Names()
	if w.namespaces != nil {
		found = append(found, w.namespaces.kept.sorted()...)
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// apply starts and stops streams to match the wanted ones. The first result contains errors
// about resources that cannot be watched.
func (w *Watcher) apply(ctx context.Context) error {
	w.scope = w.namespacesInScope()
	if w.Scoped != nil {
		w.Scoped(slices.Clone(w.scope))
	}
	for name, r := range w.active {
		i := slices.IndexFunc(w.wanted, func(found discovery.SelectedResource) bool { return found.String() == name })
		if i < 0 || !r.isSame(w.wanted[i]) {
			w.unwatchResource(ctx, r)
		}
	}
	var problems []error
	for _, found := range w.wanted {
		problems = append(problems, w.watchResource(ctx, found))
	}
	return errors.Join(problems...)
}

// watchResource makes sure that a resource has its streams: one for the cluster, or one for each namespace in
// the scope.
func (w *Watcher) watchResource(ctx context.Context, found discovery.SelectedResource) error {
	r := w.active[found.String()]
	if r == nil && w.isStopping(stoppingResource(found.Resource)) {
		return nil // it starts after the previous one has stopped
	}
	if r == nil {
		var err error
		r, err = w.Consumer.SetUp(ctx, found)
		if err != nil {
			return err
		}
		r.rediscover = w.rediscover
		w.mu.Lock()
		w.active[r.Name] = r
		w.mu.Unlock()
		w.log(r).Info("Watching a resource.")
	}
	namespaces := w.scope
	if !r.Namespaced || len(w.Settings.Scope.Namespaces) == 0 {
		namespaces = []string{metav1.NamespaceAll}
	}
	for namespace, s := range r.streams.all() {
		if !slices.Contains(namespaces, namespace) {
			w.unwatchNamespace(ctx, r, s)
		}
	}
	for _, namespace := range namespaces {
		if r.streams.all()[namespace] == nil && !w.isStopping(stoppingStream(r, namespace)) {
			w.startStream(ctx, r, namespace)
		}
	}
	return nil
}

// startStream starts a stream of handled objects. If handlers are already being called, they must wait until its
// objects are in the indices.
func (w *Watcher) startStream(ctx context.Context, r *Resource, namespace string) {
	ctx, cancel := context.WithCancel(ctx)
	s := newResourceStream(ctx, r, namespace, w.shown.share(r), w.Consumer)
	s.cancel = cancel
	s.stopped = ctx.Done()
	s.attempts = attempts{log: w.log(r).WithValues("namespace", namespace), metrics: w.Metrics, resource: r.Name, messages: &aboutObjects}
	if !r.Selection.IsEmpty() {
		s.attempts.log = s.attempts.log.WithValues("labelSelector", r.Selection.Labels, "fieldSelector", r.Selection.Fields)
		s.attempts.messages = &aboutSelected
	}
	source := r.API.Source(namespace, s.share, w.Settings.Watching, func(err error) {
		if s.attempts.isRefusal(err) && !s.listed.isSet() {
			s.refused.set()
		}
		s.attempts.record(err)
		if mayBeRemoved(err) {
			w.rediscover.send()
		}
	})
	s.refresh = source.Refresh
	source.Interrupted = s.attempts.interrupted
	s.interrupt = source.Interrupt
	s.renew = source.Renew
	if r.FillsIndices && w.listed.isSet() {
		w.indexed.hold(s.Listed(), s.stopped, s.refused.done, indexTimeout, func() {
			w.log(r).Info("The objects could not be listed in time; handlers are called before the objects are in the indices.", "namespace", namespace)
		})
	}
	r.Add(s)
	w.running.Go(func() { s.run(ctx, w.Settings.Watching, source, &object.Snapshot{}, nil) })
	w.log(r).V(1).Info("The objects are listed and watched.", "namespace", namespace)
}

// unwatchNamespace stops the stream of a namespace that was removed.
func (w *Watcher) unwatchNamespace(ctx context.Context, r *Resource, s *Stream) {
	r.streams.remove(s.namespace)
	w.stopStreams(ctx, stoppingStream(r, s.namespace), []*Stream{s}, func() {
		w.Consumer.Forget(ctx, r, object.StreamKey{Resource: r.Name, Namespace: s.namespace})
	})
	w.log(r).V(1).Info("The objects are not watched anymore.", "namespace", s.namespace)
}

// unwatchResource stops all streams of a resource that was removed or has changed.
func (w *Watcher) unwatchResource(ctx context.Context, r *Resource) {
	w.mu.Lock()
	delete(w.active, r.Name)
	w.mu.Unlock()
	var all []*Stream
	for namespace, s := range r.streams.all() {
		all = append(all, s)
		r.streams.remove(namespace)
	}
	w.stopStreams(ctx, stoppingResource(r.Resource), all, func() {
		w.Consumer.Forget(ctx, r, object.StreamKey{Resource: r.Name})
	})
	w.log(r).Info("A resource is not watched anymore.")
}

// stopStreams stops streams, and cleans up after their last events. When the operator stops,
// it keeps everything, because daemons may still use it.
func (w *Watcher) stopStreams(ctx context.Context, key string, all []*Stream, clean func()) {
	w.mu.Lock()
	w.stopping[key] = struct{}{}
	w.mu.Unlock()
	for _, s := range all {
		s.cancel()
	}
	w.running.Go(func() {
		for _, s := range all {
			<-s.ended.done
		}
		if ctx.Err() == nil {
			clean()
		}
		w.mu.Lock()
		delete(w.stopping, key)
		w.mu.Unlock()
		w.reapply.send() // waiting resources can start now
	})
}

func (w *Watcher) isStopping(key string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, found := w.stopping[key]
	return found
}

// stoppingResource is the key for all versions of a resource.
func stoppingResource(r selector.Resource) string { return r.GVR().GroupResource().String() }

func stoppingStream(r *Resource, namespace string) string { return r.Name + "/" + namespace }

func (w *Watcher) log(r *Resource) logr.Logger { return w.Logger.WithValues("resource", r.Name) }
