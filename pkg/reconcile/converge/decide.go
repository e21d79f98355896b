package converge

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/pkg/model/convergence"
)

// view is all that a decision about a wanted child depends on, besides what is wanted.
type view struct {
	// live is the latest version of the child, or nil if it does not exist. Known is the version
	// that was judged last, or nil after a restart.
	live, known *fact
	// object is the live child if it was read from the API server. Without it, live is what a
	// watch or an answer has shown.
	object *unstructured.Unstructured
	unresolved
}

// unresolved is an event of a child that no decision has dealt with yet.
type unresolved struct {
	// isLost is set if another client has deleted the child, and it does not exist again.
	// MustAsk is set if no handler has decided about that.
	isLost, mustAsk bool
	// undecided are fields that others have changed, and about which a decision has failed.
	undecided accepted
}

// action names what the operator must do with a wanted child.
type action uint8

const (
	leave    action = iota // it is what it should be
	wait                   // until it is deleted
	create                 // it does not exist
	change                 // something else is wanted
	restore                // others have changed it
	accept                 // a restoration in which handlers accept all changes: only the record of that is applied
	adopt                  // it has no owner, or has lost its label
	takeOver               // the operator has applied fields under a former name: move them, and decide again
	examine                // only the object itself shows what to do: read it, and decide again
	refuse                 // it belongs to others
)

// decision says what the operator must do with a child.
type decision struct {
	action  action
	applied applied // the child as it is applied
	refusal error   // of refuse
}

// retryPause is the pause before the next attempt to create a child that waits for something that
// is not watched. Its name must become free, or its kind must be served.
const retryPause = 5 * time.Second

// decide returns what must be done with a wanted child.
func (c claim) decide(ch *child, v view) decision {
	live := v.live
	if live == nil {
		return decision{action: create, applied: c.mark(ch, c.hashes[0], false, nil)}
	}
	label := c.hashes[0]
	hasLabel := slices.Contains(c.hashes, live.owner)
	if hasLabel {
		label = live.owner
	}
	isOurs := hasLabel && !live.isControlledByOther(c.owner.Parent.UID)
	isRead := v.object != nil
	d := decision{applied: c.mark(ch, label, live.keep, live.acceptedBy(c.owner))}
	switch {
	case live.deleting && (isOurs || !isRead):
		d.action = wait
	case live.deleting:
		d.action = refuse
		d.refusal = handler.Temporary(errors.New("an object of this name is being deleted; the child is created after that"), retryPause)
	case !isRead && (!isOurs || live.former):
		d.action = examine
	case !isOurs:
		d.refusal = c.check(ch, v)
		switch {
		case d.refusal != nil:
			d.action = refuse
		case live.former:
			d.action = takeOver
		default:
			d.action = adopt
		}
	case live.former:
		d.action = takeOver
	case live.marks.Wanted == "" && live.isApplied():
		d.action = restore // others have changed the annotation
	case live.marks.Wanted != d.applied.hash:
		d.action = change
	case !isRead && v.known != nil && v.known.uid == live.uid && v.known.digest == live.digest:
		d.action = leave
	case (isRead || v.known == nil) && live.isApplied() && len(live.detail().lost(d.applied.content)) == 0:
		d.action = leave
	default:
		d.action = restore
	}
	return d
}

// check returns an error unless the owner may take over an object without its label.
func (c claim) check(ch *child, v view) error {
	live := v.live
	parent := c.owner.Parent
	byParent := live.controller == parent.UID || live.marks.Parent == parent.String() // another controller is refused first
	refuse := func(owner, remedy string) error {
		return &convergence.NotOursError{Child: live.Key, Owner: owner, Parent: described(parent.String(), parent.UID), Remedy: remedy}
	}
	remove := "kubectl delete " + schema.GroupResource{Group: ch.resource.Group, Resource: ch.resource.Plural}.String() + " " + live.Name
	if live.Namespace != "" {
		remove += " -n " + live.Namespace
	}
	switch {
	case live.isControlledByOther(parent.UID) && parent.isNameOf(metav1.GetControllerOfNoCopy(v.object), live.Namespace):
		return refuse("a former parent of this name, "+ControllerIn(v.object),
			"the garbage collector of Kubernetes deletes it; in a cluster without one, such as that of envtest, delete it yourself: "+remove)
	case live.isControlledByOther(parent.UID):
		return refuse("another controller, "+ControllerIn(v.object), "rename the child, or, if that controller does not need the object, delete it: "+remove)
	case c.hasLostLabel(live):
		return nil
	case live.owner == "" && c.adopts:
		return nil
	case live.owner == "":
		return refuse("no owner", "declare the handler with kopf.AdoptExisting() to take it over, rename the child, or delete the object: "+remove)
	case byParent && live.marks.Handler != c.owner.Handler && c.isDeclared(live.marks.Handler):
		return refuse(fmt.Sprintf("the handler %q of the same parent", live.marks.Handler), "return it in one of the two handlers only")
	case byParent && c.adopts:
		return nil
	case byParent && live.marks.Handler == c.owner.Handler && live.isApplied():
		return refuse("a former parent of this name", "declare the handler with kopf.AdoptExisting() to take it over, rename the child, or delete the object: "+remove)
	case byParent && live.marks.Handler == c.owner.Handler:
		return refuse("the same handler of an operator with another name", "add the name to settings.FormerNames if this operator was renamed, or rename the child")
	case byParent:
		return refuse(fmt.Sprintf("the handler %q, which is not declared anymore", live.marks.Handler),
			fmt.Sprintf("declare the handler with kopf.ID(%q) if it was renamed, or with kopf.AdoptExisting() to take it over", live.marks.Handler))
	default:
		return refuse(cmp.Or(live.marks.Parent, "another parent"), "rename the child: an object has one parent")
	}
}

// hasLostLabel reports whether the object is a child of the owner whose label another client has
// removed or changed. The owner reference or the annotation says so.
func (c claim) hasLostLabel(live *fact) bool {
	if live.controller == c.owner.Parent.UID && live.owner == "" {
		return true
	}
	return live.isApplied() && slices.ContainsFunc(c.hashes, func(owner string) bool {
		return live.detail().binding == bindingOf(owner, live.Key)
	})
}

// ControllerIn describes the owner that controls an object, or returns "" if there is none.
func ControllerIn(u *unstructured.Unstructured) string {
	reference := metav1.GetControllerOfNoCopy(u)
	if reference == nil {
		return ""
	}
	kind := schema.FromAPIVersionAndKind(reference.APIVersion, reference.Kind).GroupKind()
	return described(convergence.Describe(kind, "", reference.Name), reference.UID)
}

func described(object string, uid types.UID) string { return fmt.Sprintf("%s (uid %s)", object, uid) }
