package settings

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// The defaults of the settings of Networking.
const (
	DefaultQPS            = 200
	DefaultBurst          = 400
	DefaultRequestTimeout = 30 * time.Second
	DefaultConnectTimeout = 30 * time.Second
)

// DefaultErrorBackoffs are the default of Networking.ErrorBackoffs.
func DefaultErrorBackoffs() []time.Duration {
	return []time.Duration{500 * time.Millisecond, time.Second}
}

// Networking is how the operator talks to the API server.
//
// An operator in the manager of another program uses the connection of that
// manager: then QPS, Burst and ConnectTimeout are that program's to decide.
//
// Specification: Networking timeouts; Retrying of API errors.
type Networking struct {
	// QPS and Burst limit the requests per second of the operator.
	// Default: DefaultQPS and DefaultBurst; a negative QPS is no limit.
	QPS   float32
	Burst int
	// RequestTimeout limits each attempt of one read or write, and of one page of a
	// list. Watches are not limited by it. Default: DefaultRequestTimeout, half of
	// what the API server gives itself: who waits longer waits for nothing.
	RequestTimeout time.Duration
	// ConnectTimeout limits the opening of a connection, for requests and watches
	// alike, as they share it. Default: DefaultConnectTimeout, as all of Kubernetes.
	ConnectTimeout time.Duration
	// ErrorBackoffs are the pauses between the attempts of a read or a write of an
	// object that fails temporarily; there is one attempt more than pauses. A longer
	// pause that the server asks for is kept. A write is repeated only if it was
	// surely not executed: any other is the business of the engine, which looks at
	// the object first. What fails still pauses its object, see Queueing.ErrorDelays.
	// Default: DefaultErrorBackoffs, enough for a server that restarts behind a load
	// balancer. They hold up a worker, and ErrorDelays do not: so they are short. An
	// empty, non-nil list disables the repetitions.
	ErrorBackoffs []time.Duration
}

func (n *Networking) fill() {
	fill(&n.QPS, DefaultQPS)
	fill(&n.Burst, DefaultBurst)
	fill(&n.RequestTimeout, DefaultRequestTimeout)
	fill(&n.ConnectTimeout, DefaultConnectTimeout)
	if n.ErrorBackoffs == nil {
		n.ErrorBackoffs = DefaultErrorBackoffs()
	}
}

func (n Networking) validate() error {
	return errors.Join(
		notNegative("Networking.Burst", n.Burst),
		notNegative("Networking.RequestTimeout", n.RequestTimeout),
		notNegative("Networking.ConnectTimeout", n.ConnectTimeout),
		noPauseIntoThePast("Networking.ErrorBackoffs", n.ErrorBackoffs),
	)
}

func noPauseIntoThePast(name string, pauses []time.Duration) error {
	if slices.ContainsFunc(pauses, func(d time.Duration) bool { return d < 0 }) {
		return fmt.Errorf("settings.%s has a negative pause: %v", name, pauses)
	}
	return nil
}
