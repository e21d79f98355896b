package reconcile

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/patch"
)

// maxTries is how often one intent is tried within a pass. Every try but the
// last one was refused because somebody else was faster.
const maxTries = 6

// errGone ends a pass over an object that does not exist any more.
var errGone = errors.New("the object is gone")

// commit writes an intent: the status first, where it is a subresource, so that
// a success is never recorded before its result is stored; then everything else
// in one patch. Both are bound to the version that they were computed for. When
// it fails, the intent stays in memory, and nothing else happens to the object
// before it is written.
func (p *pass) commit(ctx context.Context, in *intent) error {
	p.memory.pending = in
	for range maxTries {
		err := p.try(ctx, in)
		switch {
		case err == nil:
			p.memory.pending, p.memory.unsent = nil, nil
			if in.cycle != nil {
				in.cycle.progress.MarkStored()
				p.written(in.cycle)
			}
			p.conclude(in)
			return nil
		case apierrors.IsNotFound(err):
			p.release()
			return errGone
		case refused(err):
			if err := p.split(ctx, in, err); err != nil {
				return err
			}
		case apierrors.IsConflict(err):
			if err := p.refresh(ctx, in); err != nil {
				return err
			}
		default:
			// The write may have been committed, or be so yet: look, and leave
			// the rest to a later pass, so that a failing server is not stormed.
			if failure := p.refresh(ctx, in); failure != nil {
				return errors.Join(err, failure)
			}
			return err
		}
	}
	return fmt.Errorf("others write to the object so often that our own writes do not get through (%d tries)", maxTries)
}

// try writes the intent against the version of the object that is known.
func (p *pass) try(ctx context.Context, in *intent) error {
	if err := p.concede(ctx, in); err != nil {
		return err
	}
	last := p.lastHold(in, p.body)
	main, status := p.wanted(in)
	if err := p.send(ctx, in, "status", status, status); err != nil {
		return err
	}
	p.statusDone()
	book, err := p.bookkeeping(ctx, in, p.body, main)
	if err != nil {
		return err
	}
	var aside map[string]any
	if p.Status {
		book, aside = patch.SplitStatus(book)
	}
	whole := patch.Minimal(p.body.Raw(), main, book)
	if err := p.send(ctx, in, "", whole, main); err != nil {
		return err
	}
	if last {
		p.release()
		return nil
	}
	// Storages in the status are the exception: theirs is a write of its own.
	return p.send(ctx, in, "status", patch.Minimal(p.body.Raw(), aside), nil)
}

// wanted is what the handlers want to be written, and what of that goes to the
// status where that is written separately. Whatever is written to an object that
// goes with this write is lost: then it is nothing.
func (p *pass) wanted(in *intent) (main, status map[string]any) {
	if p.lastHold(in, p.body) {
		return nil, nil
	}
	main = p.contributed(in, p.body)
	if p.Status {
		return patch.SplitStatus(main)
	}
	return main, nil
}

// send writes one merge patch, unless it would change nothing. The handlers'
// part of it is remembered until the answer is there.
func (p *pass) send(ctx context.Context, in *intent, subresource string, merge, theirs map[string]any) error {
	if len(merge) == 0 {
		return nil
	}
	text, err := p.bound(merge)
	if err != nil {
		return err
	}
	d := p.examine(ctx, merge)
	p.memory.doubt = true
	open := in.unanswered
	if theirs != nil {
		in.unanswered = append(slices.Clone(open), p.attempt(theirs, subresource))
	}
	snapshot, err := p.api.Patch(ctx, p.key.NamespacedName, subresource, text)
	p.Metrics.Write(p.key.Resource, in.reason(subresource), answerOf(err))
	if err != nil {
		if refused(err) || apierrors.IsConflict(err) { // nothing was written
			in.unanswered, p.memory.doubt = open, !refused(err)
		}
		return err
	}
	p.body = snapshot.Body()
	p.memory.written(p.body)
	in.unanswered = nil // earlier ones are bound to a version that is past
	p.claim(merge, d)
	p.warnPruned(merge)
	return nil
}

// bound makes the patch valid for the version that it was computed for, and for
// no other one.
func (p *pass) bound(merge map[string]any) ([]byte, error) {
	version := map[string]any{"metadata": map[string]any{"resourceVersion": p.body.ResourceVersion()}}
	return json.Marshal(patch.ApplyMerge(merge, version))
}

// refresh reads the object after a write that failed, and finds out what of the
// intent is there in spite of it.
func (p *pass) refresh(ctx context.Context, in *intent) error {
	p.memory.doubt = true
	body, err := p.get(ctx)
	if err != nil {
		return err
	}
	if body == nil {
		return errGone
	}
	p.adopt(in, body)
	return nil
}

// adopt goes on with a version that others may have written.
func (p *pass) adopt(in *intent, body *object.Body) {
	p.body, p.foreign, in.foreign = body, true, true
	for _, a := range in.unanswered {
		if patch.Minimal(body.Raw(), a.merge) == nil {
			p.memory.unsent = a.settled(p.memory.unsent)
		}
	}
	// One that is bound to this very version may still be on its way.
	in.unanswered = slices.DeleteFunc(in.unanswered, func(a attempt) bool { return a.version != body.ResourceVersion() })
}

// statusDone notes that the handlers' part of the status is written.
func (p *pass) statusDone() {
	if p.Status {
		for i := range p.memory.unsent {
			p.memory.unsent[i].StatusWritten = true
		}
	}
}

// settlePending writes what an earlier pass could not.
func (p *pass) settlePending(ctx context.Context) error {
	in := p.memory.pending
	if in == nil {
		return nil
	}
	p.adopt(in, p.body)
	return p.commit(ctx, in)
}

// refused tells whether the server does not want the content of a write, now or
// ever: another try of the same makes no sense.
func refused(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) ||
		(apierrors.IsForbidden(err) && !unauthorized(err)) || apierrors.IsRequestEntityTooLargeError(err) || tooLarge(err)
}

// unauthorized tells whether the operator lacks a permission, in contrast to a
// policy that does not want the content: an administrator can grant it, and then
// the same write goes through. Only the words of the server tell which it is.
func unauthorized(err error) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "cannot patch resource")
}

// tooLarge tells whether etcd does not take an object for its size. The API
// server passes that on as an error of its own, in the words of etcd.
func tooLarge(err error) bool {
	passedOn := apierrors.IsInternalError(err) || apierrors.ReasonForError(err) == metav1.StatusReasonUnknown
	return err != nil && passedOn && (strings.Contains(err.Error(), "request is too large") || strings.Contains(err.Error(), "message larger than max"))
}
