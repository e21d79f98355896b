package certificates

import (
	"context"
	"crypto/tls"
	"errors"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
)

// DefaultRotation is the default of Options.Rotation: a leaked key is worthless after a
// quarter of a year.
const DefaultRotation = 30 * 24 * time.Hour

const (
	// rotationsPerLifetime is the lifetime of a certificate in rotations: during the
	// first it is announced, during the second it is served, the third is a reserve.
	rotationsPerLifetime = 3
	// minLifetime keeps frequent rotations independent of precise clocks.
	minLifetime = 24 * time.Hour
	// retriesPerRotation is how often a failed rotation is retried before the next one
	// is due.
	retriesPerRotation = 10
	// storePollInterval is how often shared certificates are loaded again.
	storePollInterval = time.Minute
)

// Options configure generated certificates.
type Options struct {
	// Names are the hosts and addresses of the server.
	Names []string
	// Rotation is how long a certificate is served. Default: DefaultRotation. Each
	// certificate is valid for three times as long, and for a day at least.
	Rotation time.Duration
	// Store keeps the certificates. Default: memory. Replicas need a store that they
	// share: a Secret.
	Store Store
	// IsLeader reports whether publish tells the clients about a bundle, as far as this process
	// knows. Only such a process rotates certificates that it shares: the others cannot know
	// whether the clients trust the next one. Nil: it does.
	IsLeader func() bool
	// Logger logs failed rotations.
	Logger logr.Logger
}

// Generated is a Source that generates its certificates.
type Generated struct {
	options Options
	shared  bool
	set     Set
	current atomic.Pointer[tls.Certificate]
}

// NewGenerated returns a source. Open generates the first certificate.
func NewGenerated(options Options) *Generated {
	if options.Rotation <= 0 {
		options.Rotation = DefaultRotation
	}
	shared := options.Store != nil
	if !shared {
		options.Store = &memoryStore{}
	}
	if !shared || options.IsLeader == nil {
		options.IsLeader = func() bool { return true }
	}
	return &Generated{options: options, shared: shared}
}

// GetCertificate returns the current certificate.
func (g *Generated) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	return g.current.Load(), nil
}

// Open loads the certificates of the store, or generates the first ones.
func (g *Generated) Open(ctx context.Context) ([]byte, error) {
	set, found, err := g.options.Store.Load(ctx)
	if err != nil {
		return nil, err
	}
	if invalid := set.validate(g.options.Names); !found || invalid != nil {
		set, err = g.createSet(ctx, set, found)
	}
	if err != nil {
		return nil, err
	}
	if err := g.serve(set); err != nil {
		return nil, err
	}
	return set.Bundle()
}

// createSet generates a new set. The bundle keeps the CA of the old one, because other
// replicas may still serve its certificate.
func (g *Generated) createSet(ctx context.Context, old Set, found bool) (Set, error) {
	set, err := NewSet(g.options.Names, g.lifetime())
	if err != nil {
		return Set{}, err
	}
	if found {
		set.Previous, _ = old.Current.caPEM() // a broken certificate has no CA to keep
	}
	err = g.options.Store.Save(ctx, set)
	if errors.Is(err, ErrChanged) {
		set, _, err = g.options.Store.Load(ctx)
	}
	return set, err
}

func (g *Generated) serve(set Set) error {
	pair, err := set.Current.tlsCertificate()
	if err != nil {
		return err
	}
	g.set = set
	g.current.Store(pair)
	return nil
}

func (g *Generated) lifetime() time.Duration {
	return max(rotationsPerLifetime*g.options.Rotation, minLifetime)
}
