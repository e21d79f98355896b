package relist

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/kopf-go/kopf/pkg/internal/sleep"
	"github.com/kopf-go/kopf/pkg/settings"
)

// Source makes the requests of one reflector, which has no other source.
type Source struct {
	// ListFunc and WatchFunc make one request, with the selectors of the source.
	ListFunc  cache.ListWithContextFunc
	WatchFunc cache.WatchFuncWithContext
	// Timeout is the shortest time after which the API server ends a watch, in whole seconds. The
	// longest one is twice that, by chance.
	Timeout time.Duration
	// Interrupted is called if a watch that has begun was interrupted, so that the objects are listed
	// again. It is not called if a request fails. Nil ignores interruptions.
	Interrupted func(reason error)

	// last is the last watch, which ends in the ordinary way after a time. Nil: a list followed.
	last  watch.Interface
	ends  time.Time
	shown proof // by the watches before the last one, since the last list
	// failed is why no watch has begun since the last one, and unlisted is why a list by a watch has
	// not.
	failed, unlisted error

	// asked has an item if Run must list the objects without a pause.
	asked chan struct{}

	mu      sync.Mutex
	end     context.CancelFunc // of the last request
	ended   error              // why Interrupt, Refresh, or Renew has ended it, or nil
	listing bool               // a list has begun, and is not complete
	again   bool               // then another one must follow
}

// The reasons why a watch that has begun does not continue.
var (
	errEarly    = errors.New("the watch has ended before its time")
	errSilent   = errors.New("the watch has delivered nothing for too long")
	errOutdated = errors.New("the API server has shown a version of another history")
	// These are no failures, so they are not reported. After errRenewed, the watch continues.
	errRefreshed = errors.New("more objects are selected")
	errRenewed   = errors.New("fewer objects are selected")
)

// IsSilence reports whether the reason of an interruption is that the watch has delivered nothing.
func IsSilence(reason error) bool { return errors.Is(reason, errSilent) }

// Client lists and watches objects. Each call is one request.
type Client[L runtime.Object] interface {
	List(ctx context.Context, options metav1.ListOptions) (L, error)
	Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error)
}

// NewSource returns the source of a reflector with the requests of a client. A list must be answered
// within the timeout. The first function narrows the requests to some objects. The second one is called with every
// error that prevents listing or watching, and with nil when a watch begins, unless the context is
// done. Both can be nil.
func NewSource[L runtime.Object](client Client[L], timeout time.Duration, watching settings.Watching, narrow func(*metav1.ListOptions), report func(error)) *Source {
	if narrow == nil {
		narrow = func(*metav1.ListOptions) {}
	}
	reportOutcome := func(ctx context.Context, err error) {
		if ctx.Err() == nil && report != nil { // it was not stopped
			report(err)
		}
	}
	return &Source{
		Timeout: watching.ServerTimeout, asked: make(chan struct{}, 1),
		ListFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			narrow(&options)
			limited, cancel := context.WithTimeout(ctx, timeout)
			defer cancel()
			list, err := client.List(limited, options)
			if err != nil {
				reportOutcome(ctx, err)
				return nil, err
			}
			return list, nil
		},
		WatchFunc: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			narrow(&options)
			started, err := Limit(ctx, watching.InactivityTimeout, func(ctx context.Context) (watch.Interface, error) {
				return client.Watch(ctx, options)
			})
			reportOutcome(ctx, err)
			return started, err
		},
	}
}

// ListWatch returns the functions that the reflector calls.
func (s *Source) ListWatch() *cache.ListWatch {
	return &cache.ListWatch{ListWithContextFunc: s.list, WatchFuncWithContext: s.watch}
}

// Interrupt ends the watch, so that the objects are listed again, because something else has shown
// another history. It does not wait, and is safe for concurrent use.
func (s *Source) Interrupt() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.interrupt(errOutdated)
}

// Refresh makes Run list the objects again, because more of them are selected. It does not wait, and is safe for concurrent
// use.
func (s *Source) Refresh() { s.reselect(errRefreshed) }

// Renew ends the watch, because fewer objects are selected: it continues from its last version with the selectors that the
// source has then. It does not wait, and is safe for concurrent use.
func (s *Source) Renew() { s.reselect(errRenewed) }

// reselect ends the last request, because other objects are selected. A list goes on, and another one follows.
func (s *Source) reselect(reason error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listing {
		s.again = true // also for fewer objects: reflectors do not continue a watch that ends at once
		return
	}
	s.interrupt(reason)
}

// interrupt ends the last request for a reason. It is called with the mutex.
func (s *Source) interrupt(reason error) {
	if errors.Is(reason, errRefreshed) {
		select {
		case s.asked <- struct{}{}:
		default: // it will begin anyway
		}
	}
	if s.ended == nil || !errors.Is(reason, errRenewed) {
		s.ended = reason
	}
	if s.end != nil {
		s.end()
	}
}

// beginList records that a list begins. It has the selectors of now.
func (s *Source) beginList() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listing = true
	s.again = false
}

// endList records that a list is complete, or has failed.
func (s *Source) endList() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listing = false
	if s.again {
		s.again = false
		s.interrupt(errRefreshed)
	}
}

// list reads one page of a list.
func (s *Source) list(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	if err := s.unlisted; err != nil { // a second request would not help
		s.unlisted = nil
		return nil, err
	}
	// Reflectors ask for "any version" (0) or "not older than the last one" to save load on the
	// server. After a restart, that can be a state from before the operator's own last writes, and
	// handlers would run again. So the list must be consistent.
	options.ResourceVersion = ""
	options.ResourceVersionMatch = ""
	if options.Continue == "" {
		s.beginList()
	}
	list, err := s.ListFunc(ctx, options)
	if err == nil {
		s.last = nil
		s.failed = nil
		s.shown = proof{}
	}
	return list, err
}

// watch begins a watch. It returns an error 410 if the reflector must list the objects first.
func (s *Source) watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	if IsList(options) {
		options.ResourceVersion = "" // consistent
		s.shown = proof{}
		s.beginList()
		started, err := s.begin(ctx, options)
		s.unlisted = nil
		if err != nil && !isUnsupported(err) {
			// The reflector would repeat some requests itself, even when it must stop.
			s.unlisted = err
			err = errUnlisted
		}
		return started, err
	}
	reason := s.interruption()
	if errors.Is(reason, errEarly) {
		// API servers end the watches of clients that are too slow for their events. A list of all objects would
		// make these even slower.
		s.shown = s.lastShown()
		if s.shown.holds(ctx, s.ListFunc) {
			reason = nil
			options.ResourceVersion = s.shown.version
		}
	}
	if reason != nil {
		if s.failed == nil && s.Interrupted != nil && ctx.Err() == nil && !errors.Is(reason, errRefreshed) {
			s.Interrupted(reason)
		}
		return nil, listAgain(reason)
	}
	started, err := s.begin(ctx, options)
	switch {
	case apierrors.IsTooManyRequests(err): // the same server asks for patience
		sleep.For(ctx, retryAfter(err))
	case err != nil:
		s.failed = err
		err = listAgain(err)
	}
	return started, err
}

// begin requests a watch.
func (s *Source) begin(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	timeout := int64((1 + rand.Float64()) * s.Timeout.Seconds())
	options.TimeoutSeconds = &timeout
	began := time.Now()
	started, err := s.WatchFunc(s.interruptible(ctx), options)
	if err == nil {
		s.last = started
		s.ends = began.Add(time.Duration(timeout) * time.Second)
		s.failed = nil
	}
	return started, err
}

// interruptible returns the context of the next request, which Interrupt ends.
func (s *Source) interruptible(ctx context.Context) context.Context {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.end != nil {
		s.end() // the last one is over
	}
	ctx, s.end = context.WithCancel(ctx)
	s.ended = nil
	return ctx
}

// errUnlisted makes a reflector list in another way.
var errUnlisted = errors.New("the objects cannot be listed by a watch")

// isUnsupported reports whether the API server does not know lists by watches.
func isUnsupported(err error) bool { return apierrors.IsBadRequest(err) || apierrors.IsInvalid(err) }

// retryAfter returns how long the API server asks to wait.
func retryAfter(err error) time.Duration {
	seconds, _ := apierrors.SuggestsClientDelay(err)
	return time.Duration(seconds) * time.Second
}

// IsList reports whether a watch is a list: it sends all objects at first.
func IsList(options metav1.ListOptions) bool {
	return options.SendInitialEvents != nil && *options.SendInitialEvents
}

// interruption returns why the reflector cannot continue from the last version, or nil.
func (s *Source) interruption() error {
	limited, _ := s.last.(*limitedWatch)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.ended != nil && !errors.Is(s.ended, errRenewed):
		return s.ended
	case s.failed != nil:
		return s.failed
	case s.ended != nil:
		return nil
	case limited != nil && limited.expired.Load():
		return errSilent
	case s.last != nil && time.Now().Before(s.ends):
		return errEarly
	default:
		return nil
	}
}

// lastShown returns what the watches since the last list have shown.
func (s *Source) lastShown() proof {
	if limited, ok := s.last.(*limitedWatch); ok {
		if shown := limited.lastShown(); shown != (proof{}) {
			return shown
		}
	}
	return s.shown
}

func listAgain(reason error) error {
	return apierrors.NewResourceExpired(fmt.Sprintf("the objects must be listed again: %v", reason))
}
