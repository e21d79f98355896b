package settings

import (
	"errors"
	"fmt"
	"time"
)

// The defaults of the settings of Watching.
const (
	DefaultServerTimeout     = 5 * time.Minute
	DefaultInactivityTimeout = 3 * time.Minute
	DefaultReconnectBackoff  = 100 * time.Millisecond
	DefaultReconnectLimit    = 30 * time.Second
)

// minServerTimeout is the unit in which the API server is told the timeout.
const minServerTimeout = time.Second

// Watching is how the operator follows the objects that it handles.
//
// Specification: Networking timeouts.
type Watching struct {
	// ServerTimeout is after how long the API server is asked to end a watch: then,
	// or up to twice as late, at random, so that watches do not all end at once. It
	// is begun again where it has ended. In whole seconds; a fraction is left out.
	// Default: DefaultServerTimeout, as all of Kubernetes: so watches spread
	// again over the API servers after one of them was restarted.
	ServerTimeout time.Duration
	// InactivityTimeout is how long a watch may bring nothing at all before it is
	// ended and begun again where it was: the connection may be dead without anybody
	// knowing. Default: DefaultInactivityTimeout: an API server gives a sign of life
	// every minute. A negative one is no limit.
	InactivityTimeout time.Duration
	// ReconnectBackoff is the shortest pause between two requests of one watch. It
	// doubles with each that fails in a row, up to ReconnectLimit; a longer pause
	// that the server asks for is kept. Default: DefaultReconnectBackoff, nearly at
	// once, but no flood.
	ReconnectBackoff time.Duration
	// ReconnectLimit is the longest pause that comes of the doubling.
	// Default: DefaultReconnectLimit: so long at most nothing is seen after the API
	// server is back.
	ReconnectLimit time.Duration
}

func (w *Watching) fill() {
	fill(&w.ServerTimeout, DefaultServerTimeout)
	fill(&w.InactivityTimeout, DefaultInactivityTimeout)
	fill(&w.ReconnectBackoff, DefaultReconnectBackoff)
	fill(&w.ReconnectLimit, DefaultReconnectLimit)
}

func (w Watching) validate() error {
	var problems []error
	if w.ServerTimeout != 0 && w.ServerTimeout < minServerTimeout {
		problems = append(problems, fmt.Errorf("settings.Watching.ServerTimeout is less than a second: %v", w.ServerTimeout))
	}
	if err := errors.Join(
		notNegative("Watching.ReconnectBackoff", w.ReconnectBackoff),
		notNegative("Watching.ReconnectLimit", w.ReconnectLimit),
	); err != nil {
		return errors.Join(append(problems, err)...)
	}
	w.fill()
	if w.ReconnectLimit < w.ReconnectBackoff {
		problems = append(problems, fmt.Errorf("settings.Watching.ReconnectLimit is shorter than ReconnectBackoff: %v and %v", w.ReconnectLimit, w.ReconnectBackoff))
	}
	return errors.Join(problems...)
}
