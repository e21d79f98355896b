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
	options Options
	ctx     context.Context
	close   context.CancelFunc
	seed    maphash.Seed
	base    *url.URL // that all requests come with
	config  *rest.Config

	mu       sync.Mutex
	known    map[string]*credential // by handler
	rejected map[uint64]time.Time   // since when, by fingerprint
	login    shared
	proven   bool // something of the last login was accepted
	failure  *Error
	told     bool // of a failure
	delays   wait.Backoff
}

// New logs in for the first time, which takes as long as the login handlers do. It
// returns an Error if they fail or return nothing of use, or that of the context.
func New(ctx context.Context, options Options) (*Credentials, error) {
	v := &Credentials{
		options: options, seed: maphash.MakeSeed(), delays: newDelays(),
		known: map[string]*credential{}, rejected: map[uint64]time.Time{},
	}
	v.ctx, v.close = context.WithCancel(context.WithoutCancel(ctx))
	first, err := v.current(ctx)
	if err != nil {
		v.Close()
		return nil, err
	}
	v.base = first.base
	v.config = shell(first)
	v.config.Transport = transport{v}
	return v, nil
}

// shell is what of the first connection remains for all of them.
func shell(first *credential) *rest.Config {
	config := rest.AnonymousClientConfig(first.config)
	config.Host = public(first.base).String()
	config.TLSClientConfig = rest.TLSClientConfig{}
	config.Dial, config.Proxy = nil, nil
	return config
}

// Config returns a configuration for all clients of the operator; the caller may
// change it. It has no credentials: they are added on the way. The configuration
// that a TLS dialler would need, for instance to execute commands in pods, is not
// in it: such clients are made from a Connection of their own.
func (v *Credentials) Config() *rest.Config { return rest.CopyConfig(v.config) }

// Check returns why the operator is not logged in; nil if it is, or if nobody has
// found out yet that it is not.
func (v *Credentials) Check() error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.failure == nil {
		return nil
	}
	return v.failure
}

// Close ends a login that is going on, and forgets all credentials. Requests fail
// from now on, so that it comes after everything else.
func (v *Credentials) Close() {
	v.close()
	v.mu.Lock()
	defer v.mu.Unlock()
	v.forget()
}

// errClosed is for requests that come too late.
var errClosed = errors.New("the operator has ended, and its connection to the cluster with it")
