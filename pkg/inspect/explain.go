package inspect

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kopf-go/kopf/internal/request"
	"github.com/kopf-go/kopf/internal/verdict"
)

// Explanation says what the handlers of a program would do with an object, and why.
type Explanation struct {
	Object    string `json:"object"`
	Namespace string `json:"namespace,omitempty"`
	// Reason names what has happened to the object: create, update, delete, resume, noop, or free.
	Reason string `json:"reason"`
	// State says it as a sentence.
	State string `json:"state"`
	// Failing says that the operator could not write or read, for example, and that no success is known since.
	Failing string `json:"failing,omitempty"`
	// Changes are the fields that have changed since the object was handled last.
	Changes []string `json:"changes,omitempty"`
	// Deletion says what the deletion waits for, or what it would wait for.
	Deletion []string  `json:"deletion"`
	Handlers []Handler `json:"handlers"`
	// Conditions are those of the status that say whether the object is ready.
	Conditions []string `json:"conditions,omitempty"`
	// Children are those of handlers of Ensure.
	Children []Child `json:"children,omitempty"`
	// Holds says what keeps handlers from being called: suspensions, and other operators.
	Holds []string `json:"holds,omitempty"`
	// PossibleHolds says what may do so: that depends on flags of the operator.
	PossibleHolds []string `json:"possibleHolds,omitempty"`
	// Requests says what would come of requests that no operator has honored yet.
	Requests []string `json:"requests,omitempty"`
	// Events are the latest ones about the object.
	Events []string `json:"events,omitempty"`
	// Leader says who holds the lease of the operator, if its namespace is known. For an operator with shards, it says who holds
	// that of the object's shard.
	Leader []string `json:"leader,omitempty"`
	// Now is the activity of a running operator, if it was asked.
	Now *Now `json:"now,omitempty"`
	// Notes are other findings, and what is unknown.
	Notes []string `json:"notes,omitempty"`
	Peers []Peer   `json:"peers,omitempty"`

	suspended, outside, unselected, pauses, stopped, refuses []string // the holds
	mayPause, mayStop, mayRefuse                             []string // the possible ones
	requestable                                              map[request.Verb][]string
	isLeaseKnown, isRunning                                  bool
	isShared                                                 bool // among replicas with shards
}

// Requestable returns the ids of the handlers that a request can be about now.
func (e *Explanation) Requestable(verb request.Verb) []string { return e.requestable[verb] }

// IsSuspended reports whether a request suspends the object.
func (e *Explanation) IsSuspended() bool { return len(e.suspended) > 0 }

// Handler is the answer about one handler.
type Handler struct {
	ID         string `json:"id"`
	Kind       string `json:"kind"`
	DeclaredAt string `json:"declaredAt,omitempty"`
	// State is one word: due, waiting, succeeded, failed, background, undecidable, …
	State   string `json:"state"`
	Message string `json:"message"`
	// Todo says how a person can help.
	Todo string `json:"todo,omitempty"`
	// Attempts is how often it was called for what has happened to the object, Started when it was called first, and Delayed
	// when the next attempt is.
	Attempts int       `json:"attempts,omitempty"`
	Started  time.Time `json:"started,omitzero"`
	Delayed  time.Time `json:"delayed,omitzero"`
	// LastRun and NextRun are the runs of a timer with a schedule.
	LastRun time.Time `json:"lastRun,omitzero"`
	NextRun time.Time `json:"nextRun,omitzero"`

	due string // the message of a handler that is due, if nothing holds it
}

// Explain explains an object.
func (c *Cluster) Explain(ctx context.Context, t Target) (*Explanation, error) {
	found, obj, err := c.get(ctx, t)
	if err != nil {
		return nil, err
	}
	s, err := c.subject(ctx, found, obj)
	if err != nil {
		return nil, fmt.Errorf("the object %s/%s cannot be explained: %w", t.Kind, t.Name, err)
	}
	for _, h := range s.Handlers { // nearly all objects wait for no rollout, and nothing is read
		if _, known := s.rollouts[h.ID]; !known && awaitsRollout(s.Object, h) {
			s.rollouts[h.ID] = c.rollout(ctx, found, h)
		}
	}
	events, eventsErr := c.listEvents(ctx, &s)
	s.failed = failedIn(c.own(events))
	e := describe(s)
	e.Handlers = append(e.Handlers, c.admission(found, &s)...)
	c.addChildren(ctx, found, &s, e)
	e.outside = c.outsideScope(obj.GetNamespace())
	e.unselected, err = c.unselected(ctx, found, &s)
	if err != nil {
		return nil, err
	}
	c.whoPauses(ctx, obj.GetNamespace(), e)
	c.addEvents(&s, events, eventsErr, e)
	c.addLeader(ctx, &s, e)
	if !c.IsRunning { // otherwise, it has checked that itself
		c.addMissingFields(ctx, e)
		c.addInvalidSettings(e)
	}
	e.qualify()
	if len(e.outside)+len(e.pauses)+len(e.mayPause) > 0 && !c.IsRunning {
		e.Notes = append(e.Notes, "The flags and variables of a running operator, such as --namespace and --priority, are unknown here.")
	}
	if note := c.startupNote(); note != "" {
		e.Notes = append(e.Notes, note)
	}
	if !c.IsRunning {
		e.Notes = append(e.Notes, c.unknownFields(ctx, found)...)
		e.Notes = append(e.Notes, c.conversions(ctx, found)...)
	}
	return e, nil
}

// qualify collects what holds handlers, and says what is not certain about those that will run.
func (e *Explanation) qualify() {
	e.Holds = slices.Concat(e.suspended, e.outside, e.unselected, e.pauses, e.stopped, e.refuses)
	e.PossibleHolds = slices.Concat(e.mayPause, e.mayStop, e.mayRefuse)
	isDue := false
	for i := range e.Handlers {
		h := &e.Handlers[i]
		if h.due == "" && h.State == string(verdict.Due) {
			h.due = h.Message
		}
		if h.due == "" {
			continue
		}
		isDue = true
		rest, will := strings.CutPrefix(h.due, "will run")
		unknown := will && !e.isRunning && e.Now == nil && !strings.HasPrefix(rest, ":") // which says of which operator
		h.State = string(verdict.Due)
		h.Message = h.due
		switch {
		case len(e.Holds) > 0 && will:
			h.State = string(verdict.Paused)
			h.Message = "would run" + rest
		case unknown && len(e.mayPause) > 0:
			h.Message = beforeError(h.Message, ", if an operator is running and not paused")
		case unknown:
			h.Message = beforeError(h.Message, ", if an operator is running")
		case len(e.mayPause) > 0:
			h.Message = beforeError(h.Message, ", unless the operator is paused")
		}
	}
	if isDue && len(e.Holds) == 0 && e.Now == nil {
		e.Notes = append(e.Notes, noteRunning)
		if !e.isLeaseKnown {
			e.Notes[len(e.Notes)-1] += " If it elects a leader, --operator-namespace says whether it is running."
		}
	}
}

// noteRunning is about what an object does not say before an attempt has ended.
const noteRunning = "Whether a handler that will run is running already is not decidable here: ask the operator by --running, or see its log with --verbose."

// describe says what the object and its handlers show, without other objects of the cluster.
func describe(s subject) *Explanation {
	e := &Explanation{Object: s.kubectl + "/" + s.object.GetName(), Namespace: s.object.GetNamespace(), Reason: string(s.Reason), State: s.state()}
	e.requestable = map[request.Verb][]string{}
	for _, verb := range []request.Verb{request.Retry, request.Rerun, request.Skip} {
		e.requestable[verb] = possible(s.Object, verb)
	}
	for _, item := range s.Diff {
		if s.WasHandled {
			e.Changes = append(e.Changes, s.change(item))
		}
	}
	e.Handlers = append(s.handlers(), s.subhandlers()...)
	for i := range e.Handlers {
		s.addAttempts(&e.Handlers[i])
	}
	e.Deletion = s.deletion()
	e.Conditions = s.conditions()
	if s.Suspension.Active {
		until := "the request is removed"
		if !s.Suspension.Until.IsZero() {
			until = s.at(s.Suspension.Until)
		}
		e.suspended = []string{fmt.Sprintf("The object is suspended until %s: no handlers are called for it, and its deletion is held. To end that: %s", until, s.commands.Of("unsuspend", s.named()))}
	}
	e.Holds = e.suspended
	for _, r := range s.Requests {
		e.Requests = append(e.Requests, r.Expected)
	}
	e.Notes = s.notes()
	return e
}
