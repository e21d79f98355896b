package converge

import (
	"cmp"
	"context"
	"errors"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kopf-go/kopf/pkg/metrics"
	"github.com/kopf-go/kopf/pkg/model/convergence"
	"github.com/kopf-go/kopf/pkg/model/selector"
)

func compareKeys(a, b Key) int {
	return cmp.Or(cmp.Compare(a.GroupKind.String(), b.GroupKind.String()), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// deleteAll deletes children, and returns the errors together.
func (r *run) deleteAll(ctx context.Context, children []*fact) error {
	var problems []error
	for _, f := range children {
		if err := r.delete(ctx, f); err != nil {
			problems = append(problems, &convergence.ChildError{Child: f.Key, Err: err})
		}
	}
	return errors.Join(problems...)
}

// delete deletes one child, unless it has changed hands meanwhile.
func (r *run) delete(ctx context.Context, f *fact) error {
	resource, err := r.Resources.FindKind(ctx, f.GroupKind)
	if err != nil {
		return err
	}
	for range maxTries {
		err := r.deleteVersion(ctx, resource, f)
		switch {
		case err == nil:
			r.Log.Info("The child is not wanted anymore, and deleted.", "child", f.Key.String())
			r.count(metrics.Deleted)
			return nil
		case isAbsent(err):
			return nil
		case apierrors.IsNotFound(err): // the version is not served anymore, or the kind
			resource, err = r.Resources.FindKindAgain(ctx, f.GroupKind)
			if err != nil {
				return err
			}
			continue
		case !apierrors.IsConflict(err):
			return err
		}
		u, err := r.api.Get(ctx, resource, f.Namespace, f.Name)
		if isAbsent(err) {
			return nil
		}
		if err != nil {
			return err
		}
		now := r.factOf(u)
		if now.uid != f.uid || !slices.Contains(r.hashes, now.owner) || now.deleting || now.keep || now.isControlledByOther(r.Owner.Parent.UID) {
			return nil
		}
		f = now
	}
	return errReplaced
}

// isAbsent reports whether the API server says that an object does not exist. Its answer that it does
// not know the resource says nothing about the object.
func isAbsent(err error) bool {
	return apierrors.IsNotFound(err) && !apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}

// deleteVersion deletes exactly this version of a child. The event of the deletion then does not
// count as a loss. If the server refuses it, a later deletion is by another client.
func (r *run) deleteVersion(ctx context.Context, resource selector.Resource, f *fact) error {
	r.decisions.noteDeletion(f.uid)
	err := r.api.Delete(ctx, resource, f)
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		r.decisions.forgetDeletion(f.uid)
	}
	return err
}
