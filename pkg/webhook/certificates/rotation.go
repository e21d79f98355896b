package certificates

import (
	"context"
	"errors"
	"reflect"
	"time"

	"github.com/kopf-go/kopf/pkg/internal/sleep"
)

// Run rotates the certificates, and serves those that other replicas have rotated.
func (g *Generated) Run(ctx context.Context, publish Publish) {
	for sleep.For(ctx, g.untilNextCheck()) {
		err := g.refresh(ctx, publish)
		if err != nil && !errors.Is(err, ErrChanged) && ctx.Err() == nil {
			g.options.Logger.Error(err, "The certificate of the admission server is not renewed yet; it is tried again.")
			sleep.For(ctx, g.options.Rotation/retriesPerRotation)
		}
	}
}

// untilNextCheck returns the time until the certificates must be checked.
func (g *Generated) untilNextCheck() time.Duration {
	next, err := g.set.nextRotation(g.options.Rotation)
	if err != nil {
		return 0
	}
	rest := max(time.Until(next), 0)
	if !g.shared {
		return rest
	}
	poll := min(storePollInterval, g.options.Rotation/retriesPerRotation)
	if !g.options.IsLeader() {
		return poll
	}
	return min(rest, poll)
}

// refresh rotates the certificates if that is due, and serves what the store has.
func (g *Generated) refresh(ctx context.Context, publish Publish) error {
	set, found, err := g.options.Store.Load(ctx)
	if err != nil {
		return err
	}
	if !found || set.validate(g.options.Names) != nil {
		// The certificates were removed from the store, or are not valid.
		created, err := g.createSet(ctx, set, found)
		if err != nil {
			return err
		}
		return g.serveStored(ctx, publish, created)
	}
	next, err := set.nextRotation(g.options.Rotation)
	switch {
	case err != nil:
		return err
	case time.Now().Before(next) || !g.options.IsLeader():
		return g.serveStored(ctx, publish, set)
	}
	rotated, err := set.Rotated(g.options.Names, g.lifetime())
	if err != nil {
		return err
	}
	if err := publishBundle(ctx, publish, rotated); err != nil {
		return err
	}
	if !g.options.IsLeader() {
		return nil // it has lost its lease, perhaps before the bundle was written
	}
	rotated.Announced = time.Now().UTC().Round(0)
	if err := g.options.Store.Save(ctx, rotated); err != nil {
		return err
	}
	g.options.Logger.V(1).Info("The certificate of the admission server was renewed.")
	return g.serve(rotated)
}

// serveStored serves what the store has, if it differs from what is served.
func (g *Generated) serveStored(ctx context.Context, publish Publish, set Set) error {
	if reflect.DeepEqual(set, g.set) {
		return nil
	}
	if err := publishBundle(ctx, publish, set); err != nil {
		return err
	}
	return g.serve(set)
}

func publishBundle(ctx context.Context, publish Publish, set Set) error {
	bundle, err := set.Bundle()
	if err != nil {
		return err
	}
	return publish(ctx, bundle)
}
