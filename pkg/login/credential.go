package login

import (
	"fmt"
	"hash/maphash"
	"net/http"
	"net/url"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
)

// reserve is how long before its end a connection is not used any longer, so that
// a request does not come too late. It is at most a tenth of the remaining life.
const reserve = 10 * time.Second

// credential is a connection that was taken into the vault.
type credential struct {
	handler   string
	priority  int
	config    *rest.Config
	until     time.Time // zero: for ever
	print     uint64
	base      *url.URL
	transport http.RoundTripper
	trial     shared // whether the API server accepts it
}

// newCredential prepares a connection for use. It sends nothing yet.
func newCredential(seed maphash.Seed, handler string, c *Connection) (*credential, error) {
	base, err := locate(c.Config)
	if err != nil {
		return nil, err
	}
	until, err := usable(c.Expires, time.Now())
	if err != nil {
		return nil, err
	}
	config := rest.CopyConfig(c.Config)
	mark, err := fingerprint(seed, config)
	if err != nil {
		return nil, err
	}
	transport, err := rest.TransportFor(config)
	if err != nil {
		return nil, err
	}
	return &credential{
		handler: handler, priority: c.Priority, until: until, print: mark,
		config: config, base: base, transport: transport,
	}, nil
}

// usable is until when a connection is used.
func usable(expires, now time.Time) (time.Time, error) {
	left := expires.Sub(now)
	switch {
	case expires.IsZero():
		return expires, nil
	case left <= 0:
		return expires, fmt.Errorf("it has expired at %s", expires.UTC().Format(time.RFC3339))
	default:
		return expires.Add(-min(reserve, left/10)), nil
	}
}

func (c *credential) validAt(now time.Time) bool { return c.until.IsZero() || now.Before(c.until) }

// before tells whether the credential is preferred to the other one, if there is one.
func (c *credential) before(other *credential) bool {
	switch {
	case other == nil:
		return true
	case c.priority != other.priority:
		return c.priority > other.priority
	default:
		return c.handler < other.handler
	}
}

// retire closes what is open and not in use; streams go on until they break. Other
// connections of the process to the same server can be among it: they are opened
// again when needed.
func (c *credential) retire() { utilnet.CloseIdleConnectionsFor(c.transport) }
