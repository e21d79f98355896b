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

// minServerTimeout is the unit of the timeout in requests.
const minServerTimeout = time.Second

// Watching configures the watches of the objects that the operator handles.
//
// Specification: Networking timeouts.
type Watching struct {
	// ServerTimeout is the time after which the API server ends a watch, or up to twice as
	// long, by chance. The operator then continues the watch where it has ended, so that
	// watches spread over the API servers again. After any other end, it lists the objects. In whole seconds; fractions are dropped.
	// Default: DefaultServerTimeout, as in the controllers of Kubernetes.
	ServerTimeout time.Duration
	// InactivityTimeout is how long a watch can deliver nothing before the operator
	// lists the objects again, because the connection may be dead. A negative value is no limit. Default:
	// DefaultInactivityTimeout; API servers send a bookmark every minute.
	InactivityTimeout time.Duration
	// ReconnectBackoff is the shortest pause before a list or watch is repeated. It doubles
	// with each consecutive failure, up to ReconnectLimit. If the server asks for a longer
	// pause, the operator keeps it. Default: DefaultReconnectBackoff.
	ReconnectBackoff time.Duration
	// ReconnectLimit is the longest pause that the doubling leads to. It is also how long
	// the operator may not notice that the API server is available again. Default:
	// DefaultReconnectLimit.
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
