package call

import (
	"context"
	"sync"
	"time"
)

// lendAfter is how long a pass keeps its permit while it waits for code of users with a context. Storages that
// answer sooner cost no turns.
const lendAfter = 100 * time.Millisecond

type permitKey struct{}

// permit is that of one pass, in the context of its work.
type permit struct {
	of       *Permits
	resource string
	lent     func()
	once     sync.Once
}

// With returns a context for the work of a pass that has a permit, so that Lend can lend it. The function lent is
// called the first time.
func (p *Permits) With(ctx context.Context, resource string, lent func()) context.Context {
	return context.WithValue(ctx, permitKey{}, &permit{of: p, resource: resource, lent: lent})
}

// Lend makes a call to code of users that can wait for something elsewhere, such as a storage in a database. If the
// call takes long, it lends the permit of the context to others, and takes one back after the call. Without a permit,
// it only makes the call.
func Lend(ctx context.Context, call func()) {
	own, has := ctx.Value(permitKey{}).(*permit)
	if !has {
		call()
		return
	}
	timer := time.AfterFunc(lendAfter, func() {
		own.once.Do(own.lent)
		own.of.Release()
	})
	defer func() { // also if the call panics, or ends its goroutine
		if !timer.Stop() {
			own.of.Continue(own.resource)
		}
	}()
	call()
}
