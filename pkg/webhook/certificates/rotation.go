package certificates

import (
	"context"
	"errors"
	"reflect"
	"time"

	"github.com/kopf-go/kopf/pkg/internal/sleep"
)

// Keep rotates the certificates, and takes over what other replicas have rotated.
func (g *Generated) Keep(ctx context.Context, publish Publish) {
	for ctx.Err() == nil {
		if !sleep.For(ctx, g.pause()) {
			return
		}
		err := g.refresh(ctx, publish)
		if err != nil && !errors.Is(err, ErrChanged) && ctx.Err() == nil {
			g.options.Logger.Error(err, "The certificate of the admission server is not renewed yet; it will be tried again.")
			sleep.For(ctx, g.options.Rotation/attempts)
		}
	}
}

// pause is the time until there is something to do.
func (g *Generated) pause() time.Duration {
	due, err := g.set.due(g.options.Rotation)
	if err != nil {
		return 0
	}
	rest := max(time.Until(due), 0)
	if g.shared {
		rest = min(rest, looking, g.options.Rotation/attempts)
	}
	return rest
}

// refresh brings the certificates up to date, which may mean nothing.
func (g *Generated) refresh(ctx context.Context, publish Publish) error {
	set, found, err := g.options.Store.Load(ctx)
	if err != nil {
		return err
	}
	if !found || set.usable(g.options.Names) != nil {
		return g.restart(ctx, publish, set, found)
	}
	due, err := set.due(g.options.Rotation)
	switch {
	case err != nil:
		return err
	case time.Now().Before(due):
		return g.take(ctx, publish, set)
	}
	return g.rotate(ctx, publish, set)
}

// restart replaces what somebody has removed or spoilt.
func (g *Generated) restart(ctx context.Context, publish Publish, old Set, found bool) error {
	set, err := g.begin(ctx, old, found)
	if err != nil {
		return err
	}
	return g.take(ctx, publish, set)
}

// take serves what the store has.
func (g *Generated) take(ctx context.Context, publish Publish, set Set) error {
	if reflect.DeepEqual(set, g.set) {
		return nil
	}
	if err := tell(ctx, publish, set); err != nil {
		return err
	}
	return g.serve(set)
}

func (g *Generated) rotate(ctx context.Context, publish Publish, set Set) error {
	rotated, err := set.Rotated(g.options.Names, g.lifetime())
	if err != nil {
		return err
	}
	if err := tell(ctx, publish, rotated); err != nil {
		return err
	}
	if err := g.options.Store.Save(ctx, rotated); err != nil {
		return err
	}
	g.options.Logger.V(1).Info("The certificate of the admission server was renewed.")
	return g.serve(rotated)
}

func tell(ctx context.Context, publish Publish, set Set) error {
	bundle, err := set.Bundle()
	if err != nil {
		return err
	}
	return publish(ctx, bundle)
}
