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

// Options are what a Vault consists of.
type Options struct {
	// Login calls the login handlers, and returns their connections by the ids of
	// the handlers; one without a connection has nothing to offer. If there is an
	// error too, the connections are used nevertheless. It is never called twice at
	// a time. It may take long: requests wait for it. Its context is done when the
	// vault is closed. Required.
	Login func(ctx context.Context) (map[string]*Connection, error)
	// Logger takes the log. Default: nothing is logged.
	Logger logr.Logger
}

// Credentials keeps an operator logged in. Safe for concurrent use.
//
// Specification: Authentication, Credentials lifecycle.
type Credentials struct {
	options   Options
	ctx       context.Context
	cancel    context.CancelFunc
	seed      maphash.Seed
	serverURL *url.URL // that all requests come with
	config    *rest.Config

	mu                sync.Mutex
	byHandler         map[string]*credential // by handler
	rejected          map[uint64]time.Time   // since when, by fingerprint
	loginCall         singleFlight
	lastLoginAccepted bool // something of the last login was accepted
	failure           *Error
	failureLogged     bool // of a failure
	backoff           wait.Backoff
}

// New logs in for the first time, which takes as long as the login handlers do. It
// returns an Error if they fail or return nothing of use, or that of the context.
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
	cs.config = sharedConfig(first)
	cs.config.Transport = transport{cs}
	return cs, nil
}

// sharedConfig is what of the first connection remains for all of them.
func sharedConfig(first *credential) *rest.Config {
	config := rest.AnonymousClientConfig(first.config)
	config.Host = withoutUserinfo(first.serverURL).String()
	config.TLSClientConfig = rest.TLSClientConfig{}
	config.Dial, config.Proxy = nil, nil
	return config
}

// Config returns a configuration for all clients of the operator; the caller may
// change it. It has no credentials: they are added on the way. The configuration
// that a TLS dialler would need, for instance to execute commands in pods, is not
// in it: such clients are made from a Connection of their own.
func (cs *Credentials) Config() *rest.Config { return rest.CopyConfig(cs.config) }

// Check returns why the operator is not logged in; nil if it is, or if nobody has
// found out yet that it is not.
func (cs *Credentials) Check() error {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if cs.failure == nil {
		return nil
	}
	return cs.failure
}

// Close ends a login that is going on, and forgets all credentials. Requests fail
// from now on, so that it comes after everything else.
func (cs *Credentials) Close() {
	cs.cancel()
	cs.mu.Lock()
	defer cs.mu.Unlock()
	cs.dropAll()
}

// errClosed is for requests that come too late.
var errClosed = errors.New("the operator has ended, and its connection to the cluster with it")
