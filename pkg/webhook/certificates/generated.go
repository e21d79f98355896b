package certificates

import (
	"context"
	"crypto/tls"
	"errors"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
)

// DefaultRotation is the default of Options.Rotation: a key that got lost is
// worthless after a quarter of a year.
const DefaultRotation = 30 * 24 * time.Hour

const (
	// rotationsPerLifetime is how many rotations a certificate lives: it is announced during
	// one, served during one, and the third is for trouble.
	rotationsPerLifetime = 3
	// minLifetime keeps frequent rotations from depending on precise clocks.
	minLifetime = 24 * time.Hour
	// retriesPerRotation is how often a rotation is tried until the next would be due.
	retriesPerRotation = 10
	// storePollInterval is how often shared certificates are looked at.
	storePollInterval = time.Minute
)

// Options are those of generated certificates.
type Options struct {
	// Names are the hosts and addresses of the server.
	Names []string
	// Rotation is how long a certificate is served. Default: DefaultRotation. Every
	// one is valid for three times that, and for a day at least.
	Rotation time.Duration
	// Store keeps the certificates. Default: memory. Replicas need one that they
	// share: a Secret.
	Store Store
	// Logger hears of what goes wrong.
	Logger logr.Logger
}

// Generated is the Source of certificates of our own.
type Generated struct {
	options Options
	shared  bool
	set     Set
	current atomic.Pointer[tls.Certificate]
}

// NewGenerated makes a source. Nothing is generated before Open.
func NewGenerated(options Options) *Generated {
	if options.Rotation <= 0 {
		options.Rotation = DefaultRotation
	}
	shared := options.Store != nil
	if !shared {
		options.Store = &memoryStore{}
	}
	return &Generated{options: options, shared: shared}
}

// GetCertificate is the one to serve now.
func (g *Generated) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	return g.current.Load(), nil
}

// Open takes the certificates of the store, or puts the first ones there.
func (g *Generated) Open(ctx context.Context) ([]byte, error) {
	set, found, err := g.options.Store.Load(ctx)
	if err != nil {
		return nil, err
	}
	if unusable := set.validate(g.options.Names); !found || unusable != nil {
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

// createSet makes a new set. Other replicas may still serve what is in the old one.
func (g *Generated) createSet(ctx context.Context, old Set, found bool) (Set, error) {
	set, err := NewSet(g.options.Names, g.lifetime())
	if err != nil {
		return Set{}, err
	}
	if found {
		set.Previous, _ = old.Current.caPEM() // of a broken one there is nothing to keep
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
