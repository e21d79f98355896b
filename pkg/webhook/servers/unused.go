package servers

import (
	"crypto/tls"
	"net"
	"net/http"
	"sync"
	"time"
)

// unusedConnections are the connections of a server on which no request has arrived yet. API servers
// open some in advance. A server of net/http that shuts down leaves them open for some seconds, but does
// not answer a request that arrives on one of them. So they are closed before.
type unusedConnections struct {
	mu       sync.Mutex
	byClient map[string]unusedConnection
}

type unusedConnection struct {
	connection
	opened time.Time
}

// connection is the part of a net.Conn that is used here.
type connection interface {
	RemoteAddr() net.Addr
	Close() error
}

// maxUnused is longer than a server leaves a connection open that waits for its first request.
const maxUnused = time.Minute

// track makes a TLS configuration report its connections.
func (u *unusedConnections) track(config *tls.Config) {
	next := config.GetConfigForClient
	config.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		u.add(hello.Conn)
		if next == nil {
			return nil, nil //nolint:nilnil // the configuration stays as it is
		}
		return next(hello)
	}
}

func (u *unusedConnections) add(opened connection) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for client, one := range u.byClient {
		if time.Since(one.opened) > maxUnused {
			delete(u.byClient, client)
		}
	}
	if u.byClient == nil {
		u.byClient = map[string]unusedConnection{}
	}
	u.byClient[opened.RemoteAddr().String()] = unusedConnection{opened, time.Now()}
}

// without returns a handler that removes the connections of its requests.
func (u *unusedConnections) without(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		u.mu.Lock()
		delete(u.byClient, r.RemoteAddr)
		u.mu.Unlock()
		handler.ServeHTTP(w, r)
	})
}

// close closes the connections.
func (u *unusedConnections) close() {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, one := range u.byClient {
		_ = one.Close() // perhaps it is closed already
	}
}
