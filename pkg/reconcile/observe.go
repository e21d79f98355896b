package reconcile

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-go/kopf/pkg/model/object"
)

func stack() string { return string(debug.Stack()) }

// observe gets hold of the freshest version of the object that is known, and
// makes sure that it is not older than our own last write. It returns false when
// there is nothing to be done, or when that has to wait.
func (p *pass) observe(ctx context.Context) (present bool, wait time.Duration, err error) {
	snapshot := p.cached(p.key.NamespacedName)
	p.deliver(ctx, snapshot)
	if snapshot == nil {
		if !p.untold() {
			p.part()
		}
		return false, 0, nil
	}
	p.renew(snapshot.GetUID())
	p.memory.background.refresh()
	p.collect()
	m, version := p.memory, snapshot.GetResourceVersion()
	switch {
	case m.released:
		return false, 0, nil
	case m.doubt:
		return p.readLive(ctx)
	case m.settled != "" && len(m.unsent) == 0 && !p.stirred() && (version == m.settled || m.stale(version)):
		return false, 0, nil // nothing was left to do, and nothing has happened
	case m.stale(version):
		if left := time.Until(m.floorAt.Add(p.Settings.Persistence.ConsistencyTimeout)); left > 0 {
			return false, left, nil // the watch will bring our own write
		}
		p.log.V(1).Info("The watch is late; the object is read directly.", "expected", m.floor, "seen", version)
		return p.readLive(ctx)
	}
	p.body = snapshot.Body()
	return true, 0, nil
}

// renew begins anew with an object that has replaced another one. What handlers
// keep in memory of that goes when they have been told of its end.
func (p *pass) renew(uid types.UID) {
	if former := p.memory.uid; former != uid && len(p.events) == 0 {
		p.memory.outlive(former)
	}
	p.memory.renew(uid)
}

// readLive asks the API server itself.
func (p *pass) readLive(ctx context.Context) (present bool, wait time.Duration, err error) {
	body, err := p.get(ctx)
	if err != nil || body == nil {
		return false, 0, err
	}
	p.body = body
	return true, 0, nil
}

// get reads the object directly; nil if it is gone, or is another one by now.
// Whatever was in doubt is not any more.
func (p *pass) get(ctx context.Context) (*object.Body, error) {
	snapshot, err := p.api.Get(ctx, p.key.NamespacedName)
	switch {
	case apierrors.IsNotFound(err):
		p.release()
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("the object cannot be read: %w", err)
	case p.memory.uid != "" && snapshot.GetUID() != p.memory.uid:
		p.release() // the watch is about to tell
		return nil, nil
	}
	body := snapshot.Body()
	p.memory.written(body)
	return body, nil
}

// release ends all dealings with this object: nothing is left to be written.
func (p *pass) release() {
	m := p.memory
	m.background.close()
	m.recollection = recollection{uid: m.uid, floor: m.floor, floorAt: m.floorAt, released: true, ended: m.ended}
}
