package revision

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/rollout"
)

// State is how far one object is in the rollout of a handler.
type State int

// The states. Only waiting objects need permission to begin.
const (
	Excluded State = iota // the handler does not apply to the object, or was not called for it yet
	Waiting               // it was handled under another revision, or under none
	Running               // it may be handled, or has begun
	Done
	Failed
)

// Handler is a handler with a revision.
type Handler struct {
	Resource, ID, Revision string
	Plan                   rollout.Plan
}

// Report says that a rollout has come to another point.
type Report struct {
	Handler
	Numbers
	Kind Kind
	// Object is one that has failed, if the rollout is stopped, or has ended with failures.
	Object object.Key
}

// Kind is the point of a rollout.
type Kind int

// The points of a rollout.
const (
	Began     Kind = iota // the step
	Stopped               // by failed objects
	Continued             // no failed object is left
	Finished              // all objects have ended, or have failed
)

// Numbers are the numbers of objects in a rollout, without those that are excluded.
type Numbers struct{ Step, Limit, Waiting, Running, Done, Failed int }

// Total returns the number of objects.
func (n Numbers) Total() int { return n.Waiting + n.Running + n.Done + n.Failed }

// Rollouts are the rollouts of an operator. It is safe for concurrent use. It calls its
// functions without its lock, possibly concurrently.
type Rollouts struct {
	// Enqueue requests a pass over an object that may be handled now.
	Enqueue func(object.Key)
	// Report is called when a rollout has come to another point.
	Report func(Report)

	mu       sync.Mutex
	rollouts map[string]*progress // by resource and id
}

// progress is the rollout of one handler.
type progress struct {
	Handler
	states  map[object.Key]State
	counts  [Failed + 1]int
	step    int  // that was reported
	stopped bool // was reported
}

// Begin begins the rollout of a handler, or begins it anew, with the states of all objects.
func (r *Rollouts) Begin(h Handler, states map[object.Key]State) {
	p := &progress{Handler: h, states: map[object.Key]State{}}
	for key, state := range states {
		p.set(key, state)
	}
	r.mu.Lock()
	if r.rollouts == nil {
		r.rollouts = map[string]*progress{}
	}
	r.rollouts[h.key()] = p
	r.advance(p)
}

// Add adds objects to a rollout that has begun. All of them count before any of them can begin.
func (r *Rollouts) Add(h Handler, states map[object.Key]State) {
	r.mu.Lock()
	p := r.rollouts[h.key()]
	if p == nil {
		r.mu.Unlock()
		return
	}
	for key, state := range states {
		if state != Waiting || p.states[key] != Running {
			p.set(key, state)
		}
	}
	r.advance(p)
}

func (h Handler) key() string { return h.Resource + " " + h.ID }

// Set sets the state of an object. A waiting object that may begin stays running.
func (r *Rollouts) Set(h Handler, key object.Key, state State) {
	r.mu.Lock()
	p := r.rollouts[h.key()]
	if p == nil || p.states[key] == state || state == Waiting && p.states[key] == Running {
		r.mu.Unlock()
		return
	}
	p.set(key, state)
	r.advance(p)
}

// Forget excludes an object from all rollouts: it is gone.
func (r *Rollouts) Forget(key object.Key) {
	for _, h := range r.Handlers() {
		r.Set(h, key, Excluded)
	}
}

// Handlers returns the handlers whose rollouts have begun.
func (r *Rollouts) Handlers() []Handler {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []Handler
	for _, p := range r.rollouts {
		all = append(all, p.Handler)
	}
	return all
}

// isRunning reports whether the object may be handled now.
func (r *Rollouts) isRunning(h Handler, key object.Key) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.rollouts[h.key()]
	return p != nil && p.states[key] == Running
}

// Clear forgets everything, because others may handle the objects from now on.
func (r *Rollouts) Clear() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.rollouts = nil
}

// Numbers returns the numbers of all rollouts in order.
func (r *Rollouts) Numbers() []Report {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []Report
	for _, p := range r.rollouts {
		all = append(all, Report{Handler: p.Handler, Numbers: p.numbers()})
	}
	slices.SortFunc(all, func(a, b Report) int { return strings.Compare(a.key(), b.key()) })
	return all
}

// set changes the state of an object.
func (p *progress) set(key object.Key, state State) {
	p.counts[p.states[key]]--
	p.counts[state]++
	p.states[key] = state
	if state == Excluded {
		delete(p.states, key)
	}
}

func (p *progress) numbers() Numbers {
	n := Numbers{Waiting: p.counts[Waiting], Running: p.counts[Running], Done: p.counts[Done], Failed: p.counts[Failed]}
	n.Step, n.Limit = p.Plan.Limit(n.Total(), n.Done+n.Failed, n.Failed)
	return n
}

// advance lets the next objects begin, and reports it. It is called with the lock, and
// releases it.
func (r *Rollouts) advance(p *progress) {
	n := p.numbers()
	free := n.Limit - n.Running - n.Done - n.Failed
	var next []object.Key
	if free > 0 && n.Waiting > 0 {
		next = p.waiting(free)
		for _, key := range next {
			p.set(key, Running)
		}
		n = p.numbers()
	}
	reports := p.reports(n, len(next) > 0)
	r.mu.Unlock()
	for _, report := range reports {
		r.Report(report)
	}
	for _, key := range next {
		r.Enqueue(key)
	}
}

// waiting returns the next objects that wait, in the order of their names, so that every
// process chooses the same ones.
func (p *progress) waiting(most int) []object.Key {
	var keys []object.Key
	for key, state := range p.states {
		if state == Waiting {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, compareKeys)
	return keys[:min(most, len(keys))]
}

func compareKeys(a, b object.Key) int {
	return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
}

// reports returns what is new about the rollout.
func (p *progress) reports(n Numbers, begins bool) []Report {
	var kinds []Kind
	isStopped := n.Failed > 0 && n.Waiting > 0 && n.Limit <= n.Total()-n.Waiting
	if p.stopped && n.Failed == 0 {
		p.stopped = false
		kinds = append(kinds, Continued)
	}
	if begins && n.Step > p.step {
		p.step = n.Step
		kinds = append(kinds, Began)
	}
	if isStopped && !p.stopped {
		p.stopped = true
		kinds = append(kinds, Stopped)
	}
	if p.step > 0 && n.Waiting+n.Running == 0 {
		p.step = 0
		kinds = append(kinds, Finished)
	}
	reports := make([]Report, 0, len(kinds))
	for _, kind := range kinds {
		report := Report{Handler: p.Handler, Numbers: n, Kind: kind}
		if kind == Stopped || kind == Finished && n.Failed > 0 {
			report.Object = p.failed()
		}
		reports = append(reports, report)
	}
	return reports
}

// failed returns the first object that has failed.
func (p *progress) failed() object.Key {
	keys := slices.Collect(maps.Keys(p.states))
	keys = slices.DeleteFunc(keys, func(key object.Key) bool { return p.states[key] != Failed })
	return slices.MinFunc(keys, compareKeys)
}
