package settings

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// The defaults of the settings of Networking.
const (
	DefaultQPS            = -1
	DefaultBurst          = 400
	DefaultMaxInFlight    = 200
	DefaultRequestTimeout = 30 * time.Second
	DefaultConnectTimeout = 30 * time.Second
	DefaultStartTimeout   = 4 * time.Minute
)

// DefaultErrorBackoffs returns the default of Networking.ErrorBackoffs.
func DefaultErrorBackoffs() []time.Duration {
	return []time.Duration{500 * time.Millisecond, time.Second}
}

// Networking configures the requests to the API server.
//
// An operator that is added to a manager uses the connection of that manager, which decides
// QPS, Burst, and ConnectTimeout. MaxInFlight then counts the requests of the operator itself: those
// of the other controllers and of the handlers' client are the manager's.
//
// Specification: Networking timeouts; Retrying of API errors.
type Networking struct {
	// MaxInFlight limits the window of requests: how many can be in flight at the same time. The window
	// begins with 2, opens up to this number while the API server answers in time, and closes when it
	// refuses requests or becomes slow. Further requests wait, and resources take turns; one without a
	// request in flight can have one more. Watches and leases do not count. A negative value is no
	// limit, and no window. Default: DefaultMaxInFlight, which is the number of changes that an API
	// server makes at the same time by default, for all of its clients.
	MaxInFlight int
	// QPS and Burst limit the requests per second: those for each resource. They are for API servers
	// without priority and fairness, or for clients that have a quota. A negative QPS is no limit.
	// Default: DefaultQPS, which is no limit, as in controller-runtime, and DefaultBurst.
	QPS   float32
	Burst int
	// RequestTimeout limits each attempt of a read, of a write, and of a page of a list, but
	// not watches. Default: DefaultRequestTimeout, which is half of the API server's own
	// limit.
	RequestTimeout time.Duration
	// ConnectTimeout limits the opening of a connection. Default: DefaultConnectTimeout, as
	// in the controllers of Kubernetes.
	ConnectTimeout time.Duration
	// StartTimeout is how long an operator waits at its start for an API server that does not
	// respond, or responds that it is not available. It is not ready in that time, and ends with an error
	// after it. After other errors, it ends after 10 seconds. A negative value is no wait.
	// Default: DefaultStartTimeout, as in Kopf.
	StartTimeout time.Duration
	// ErrorBackoffs are the pauses between the attempts of a read or a write that fails
	// temporarily. There is one attempt more than pauses. If the server asks for a longer
	// pause, the operator keeps it. A write is repeated only if it was certainly not
	// executed; otherwise, the operator reads the object first. If all attempts fail, the
	// object pauses, see Queueing.ErrorDelays. These pauses block a worker, so they are short.
	// Default: DefaultErrorBackoffs, which is enough for a server that restarts behind a load
	// balancer. An empty, non-nil list disables the repetitions.
	ErrorBackoffs []time.Duration
}

func (n *Networking) fill() {
	fill(&n.MaxInFlight, DefaultMaxInFlight)
	fill(&n.QPS, DefaultQPS)
	fill(&n.Burst, DefaultBurst)
	fill(&n.RequestTimeout, DefaultRequestTimeout)
	fill(&n.ConnectTimeout, DefaultConnectTimeout)
	fill(&n.StartTimeout, DefaultStartTimeout)
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
