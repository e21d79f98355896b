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

// expiryMargin is how long before its expiry a connection is replaced, so that no request
// arrives too late. It is at most a tenth of the remaining life.
const expiryMargin = 10 * time.Second

// credential is a connection in Credentials.
type credential struct {
	handler      string
	priority     int
	config       *rest.Config
	usableUntil  time.Time // zero: forever
	fingerprint  uint64
	serverURL    *url.URL
	transport    http.RoundTripper
	verification singleFlight // whether the API server accepts it
}

// newCredential prepares a connection for use. It sends no requests.
func newCredential(seed maphash.Seed, handler string, c *Connection) (*credential, error) {
	base, err := serverURLOf(c.Config)
	if err != nil {
		return nil, err
	}
	until, err := usableUntil(c.Expires, time.Now())
	if err != nil {
		return nil, err
	}
	config := rest.CopyConfig(c.Config)
	hash, err := fingerprint(seed, config)
	if err != nil {
		return nil, err
	}
	transport, err := rest.TransportFor(config)
	if err != nil {
		return nil, err
	}
	return &credential{
		handler: handler, priority: c.Priority, usableUntil: until, fingerprint: hash,
		config: config, serverURL: base, transport: transport,
	}, nil
}

// usableUntil returns when a connection must be replaced.
func usableUntil(expires, now time.Time) (time.Time, error) {
	left := expires.Sub(now)
	switch {
	case expires.IsZero():
		return expires, nil
	case left <= 0:
		return expires, fmt.Errorf("it expired at %s", expires.UTC().Format(time.RFC3339))
	default:
		return expires.Add(-min(expiryMargin, left/10)), nil
	}
}

// closeIdle closes idle connections; streams continue until they break. It can close
// connections of other clients of the process to the same server, which open them again.
func (c *credential) closeIdle() { utilnet.CloseIdleConnectionsFor(c.transport) }
