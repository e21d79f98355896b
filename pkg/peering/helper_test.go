package peering

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kopf-go/kopf/pkg/settings"
)

// fakeObject is a peering object in memory that behaves like one in a cluster.
type fakeObject struct {
	mu           sync.Mutex
	status       map[string]any // nil: the object does not exist
	version      int
	changed      chan struct{} // closed by the next change
	patches      []map[string]any
	failure      error // of every request
	stalled      bool  // watches neither show changes nor fail
	dropsEntries bool  // entries are not stored
	// beforePrune is called once before the next removal of an entry.
	beforePrune func()
}

func newFakeObject() *fakeObject {
	return &fakeObject{status: map[string]any{}, version: 1, changed: make(chan struct{})}
}

// find finds the object in the first API group; the other one does not have the resource.
func (p *fakeObject) find(_ context.Context, target Target, in string) (peeringAPI, error) {
	if in != group {
		return nil, target.notFound(in, true)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p, p.failure
}

// change calls the function, increments the version, and shows the object to the watches.
func (p *fakeObject) change(what func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	what()
	p.version++
	close(p.changed)
	p.changed = make(chan struct{})
}

func (p *fakeObject) set(identity string, entry any) {
	p.change(func() { p.apply(map[string]any{identity: entry}) })
}

func (p *fakeObject) remove() { p.change(func() { p.status = nil }) }

// fail makes all requests and watches fail; nil makes them succeed again.
func (p *fakeObject) fail(err error) { p.change(func() { p.failure = err }) }

func (p *fakeObject) apply(entries map[string]any) {
	p.status = maps.Clone(p.status)
	for identity, entry := range entries {
		if entry == nil {
			delete(p.status, identity)
		} else {
			p.status[identity] = entry
		}
	}
}

func (p *fakeObject) state() peeringState {
	return peeringState{status: p.status, version: strconv.Itoa(p.version)}
}

func (p *fakeObject) watch(ctx context.Context, show func(peeringState)) error {
	for {
		p.mu.Lock()
		s, failure, changed, stuck := p.state(), p.failure, p.changed, p.stalled
		p.mu.Unlock()
		if failure != nil {
			return failure
		}
		if !stuck {
			show(s)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil
		}
	}
}

func (p *fakeObject) read(context.Context) (peeringState, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.failure != nil {
		return peeringState{}, p.failure
	}
	if p.status == nil {
		return peeringState{}, &NotFoundError{Group: group, Kind: "KopfPeering", Name: "default"}
	}
	return p.state(), nil
}

func (p *fakeObject) patch(ctx context.Context, version string, entries map[string]any) (peeringState, error) {
	if _, err := p.read(ctx); err != nil {
		return peeringState{}, err
	}
	if meanwhile := p.beforePrune; len(entries) > 0 && slices.Contains(slices.Collect(maps.Values(entries)), nil) && meanwhile != nil {
		p.beforePrune = nil
		meanwhile()
	}
	if version != "" && version != strconv.Itoa(p.currentVersion()) {
		return peeringState{}, apierrors.NewConflict(schema.GroupResource{}, "default", nil)
	}
	p.change(func() {
		p.patches = append(p.patches, entries)
		if !p.dropsEntries {
			p.apply(encoded(entries))
		}
	})
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.state(), nil
}

func (p *fakeObject) currentVersion() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.version
}

// encoded returns entries as they are decoded from JSON.
func encoded(entries map[string]any) map[string]any {
	result := map[string]any{}
	for identity, entry := range entries {
		result[identity] = entry
		if fields, ok := entry.(map[string]any); ok {
			fields = maps.Clone(fields)
			if priority, ok := fields["priority"].(int); ok {
				fields["priority"] = int64(priority)
			}
			result[identity] = fields
		}
	}
	return result
}

// identities returns the identities that have entries.
func (p *fakeObject) identities() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Sorted(maps.Keys(p.status))
}

// records returns the valid entries.
func (p *fakeObject) records() map[string]Record {
	p.mu.Lock()
	defer p.mu.Unlock()
	records, _ := Parse(p.status)
	return records
}

func (p *fakeObject) writes() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.patches)
}

// operator is a peering in a test, its notifications and its log.
type operator struct {
	*Peering
	mu       sync.Mutex
	notified []bool
	log      []string
	stop     func() // and wait until it has left
}

// runPeering runs the peering of an operator until the test ends.
func runPeering(t *testing.T, find findFunc, identity string, s settings.Peering, adjust ...func(*Options)) *operator {
	t.Helper()
	o := &operator{}
	options := Options{
		Settings: s, Identity: identity,
		Notify: func(paused bool) { o.locked(func() { o.notified = append(o.notified, paused) }) },
		Logger: logr.New(funcr.New(func(_, args string) { o.locked(func() { o.log = append(o.log, args) }) }, funcr.Options{Verbosity: 1}).GetSink()),
	}
	for _, change := range adjust {
		change(&options)
	}
	o.Peering = newPeering(find, options)
	ctx, cancel := context.WithCancel(context.Background())
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		o.Run(ctx)
	}()
	o.stop = func() {
		cancel()
		<-stopped
	}
	t.Cleanup(o.stop)
	synctest.Wait()
	return o
}

func (o *operator) locked(f func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	f()
}

// history returns all notifications, each as "active" or "paused".
func (o *operator) history() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	var words []string
	for _, paused := range o.notified {
		words = append(words, map[bool]string{true: "paused", false: "active"}[paused])
	}
	return words
}

func (o *operator) lines() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.log)
}

// entry returns an entry that another operator has just written.
func entry(priority int, lifetime time.Duration) map[string]any {
	return encoded(map[string]any{"": Record{Priority: priority, LastSeen: time.Now(), Lifetime: lifetime}.encode()})[""].(map[string]any)
}

// advance advances the virtual time.
func advance(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// State returns whether the operator is paused, and the reason as text. Until that is
// known, the operator counts as paused.
func (p *Peering) State() (paused bool, reason string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.notified {
		return true, "the peering is not known yet"
	}
	var reasons []string
	for namespace, m := range p.memberships {
		if m.decision.Paused {
			reasons = append(reasons, m.decision.describe(Target{p.options.Settings.Name, namespace}))
		}
	}
	slices.Sort(reasons)
	return p.paused, strings.Join(reasons, "; ")
}

func (d Decision) describe(target Target) string {
	object := fmt.Sprintf("%s %q", target.kind(), target.Name) + (&NotFoundError{Namespace: target.Namespace}).inNamespace()
	if d.Reason == ReasonObjectMissing {
		return object + " is missing"
	}
	return fmt.Sprintf("%s has operators of the %s priority: %s", object, d.Reason, strings.Join(d.Peers, ", "))
}
