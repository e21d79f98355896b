package certificates

import (
	"context"
	"errors"
	"reflect"
	"time"

	"github.com/kopf-go/kopf/pkg/internal/sleep"
)

// Run rotates the certificates, and takes over what other replicas have rotated.
func (g *Generated) Run(ctx context.Context, publish Publish) {
	for ctx.Err() == nil {
		if !sleep.For(ctx, g.untilNextCheck()) {
			return
		}
		err := g.refresh(ctx, publish)
		if err != nil && !errors.Is(err, ErrChanged) && ctx.Err() == nil {
			g.options.Logger.Error(err, "The certificate of the admission server is not renewed yet; it will be tried again.")
			sleep.For(ctx, g.options.Rotation/retriesPerRotation)
		}
	}
}

// untilNextCheck is the time until there is something to do.
func (g *Generated) untilNextCheck() time.Duration {
	due, err := g.set.nextRotation(g.options.Rotation)
	if err != nil {
		return 0
	}
	rest := max(time.Until(due), 0)
	if g.shared {
		rest = min(rest, storePollInterval, g.options.Rotation/retriesPerRotation)
	}
	return rest
}

// refresh brings the certificates up to date, which may mean nothing.
func (g *Generated) refresh(ctx context.Context, publish Publish) error {
	set, found, err := g.options.Store.Load(ctx)
	if err != nil {
		return err
	}
	if !found || set.validate(g.options.Names) != nil {
		return g.recreate(ctx, publish, set, found)
	}
	due, err := set.nextRotation(g.options.Rotation)
	switch {
	case err != nil:
		return err
	case time.Now().Before(due):
		return g.useStored(ctx, publish, set)
	}
	return g.rotate(ctx, publish, set)
}

// recreate replaces what somebody has removed or spoilt.
func (g *Generated) recreate(ctx context.Context, publish Publish, old Set, found bool) error {
	set, err := g.createSet(ctx, old, found)
	if err != nil {
		return err
	}
	return g.useStored(ctx, publish, set)
}

// useStored serves what the store has.
func (g *Generated) useStored(ctx context.Context, publish Publish, set Set) error {
	if reflect.DeepEqual(set, g.set) {
		return nil
	}
	if err := publishBundle(ctx, publish, set); err != nil {
		return err
	}
	return g.serve(set)
}

func (g *Generated) rotate(ctx context.Context, publish Publish, set Set) error {
	rotated, err := set.Rotated(g.options.Names, g.lifetime())
	if err != nil {
		return err
	}
	if err := publishBundle(ctx, publish, rotated); err != nil {
		return err
	}
	if err := g.options.Store.Save(ctx, rotated); err != nil {
		return err
	}
	g.options.Logger.V(1).Info("The certificate of the admission server was renewed.")
	return g.serve(rotated)
}

func publishBundle(ctx context.Context, publish Publish, set Set) error {
	bundle, err := set.Bundle()
	if err != nil {
		return err
	}
	return publish(ctx, bundle)
}
