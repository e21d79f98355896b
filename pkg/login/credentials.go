package login

import (
	"context"
	"errors"
	"hash/maphash"
	"net/url"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
)

// Options configure Credentials.
type Options struct {
	// Login calls the login handlers and returns their connections by handler ID; a
	// handler may return nil. The connections are used even if there is an error.
	// Requests wait for Login, which may take long and is never called concurrently. Its
	// context is done when the Credentials are closed. Required.
	Login func(ctx context.Context) (map[string]*Connection, error)
	// Logger receives the log. Default: nothing is logged.
	Logger logr.Logger
}

// Credentials keeps an operator logged in. It is safe for concurrent use.
//
// Specification: Authentication, Credentials lifecycle.
type Credentials struct {
	options   Options
	ctx       context.Context
	cancel    context.CancelFunc
	seed      maphash.Seed
	serverURL *url.URL // of all incoming requests
	config    *rest.Config

	mu                sync.Mutex
	byHandler         map[string]*credential
	rejected          map[uint64]time.Time // when, by fingerprint
	loginCall         singleFlight
	lastLoginAccepted bool // the API server has accepted one of its credentials
	failure           *Error
	failureLogged     bool
	backoff           wait.Backoff
}

// New logs in for the first time, which takes as long as the login handlers do. It
// returns an Error if the login yields no usable credentials, or the error of the context.
func New(ctx context.Context, options Options) (*Credentials, error) {
	cs := &Credentials{
		options: options, seed: maphash.MakeSeed(), backoff: newBackoff(),
		byHandler: map[string]*credential{}, rejected: map[uint64]time.Time{},
	}
	cs.ctx, cs.cancel = context.WithCancel(context.WithoutCancel(ctx))
	first, err := cs.current(ctx)
	if err != nil {
		cs.Close()
		return nil, err
	}
	cs.serverURL = first.serverURL
	// The part of the first configuration that all connections share.
	cs.config = rest.AnonymousClientConfig(first.config)
	cs.config.Host = withoutUserinfo(first.serverURL).String()
	cs.config.TLSClientConfig = rest.TLSClientConfig{}
	cs.config.Dial = nil
	cs.config.Proxy = nil
	cs.config.Transport = transport{cs}
	return cs, nil
}

// Config returns a configuration for all clients of the operator; the caller may change
// it. It contains no credentials: the transport adds them to each request. It also lacks
// what a TLS dialer needs, for instance to execute commands in pods: make such clients
// from the Config of a Connection.
func (cs *Credentials) Config() *rest.Config { return rest.CopyConfig(cs.config) }

// Check returns why the operator is not logged in, or nil if no request has failed since
// the last login.
func (cs *Credentials) Check() error {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if cs.failure == nil {
		return nil
	}
	return cs.failure
}

// Close cancels a login in progress and drops all credentials. All further requests fail,
// so close the Credentials last.
func (cs *Credentials) Close() {
	cs.cancel()
	cs.mu.Lock()
	defer cs.mu.Unlock()
	cs.dropAll()
}

// errClosed is the error of requests after Close.
var errClosed = errors.New("the operator has stopped and closed its connection to the cluster")
