package converge

import (
	"cmp"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-go/kopf/pkg/model/convergence"
)

// ownership is what an owner says of an object that has the name of one of its children.
type ownership struct {
	owner Owner
	// hashes are the labels that the children of the owner can have.
	hashes []string
	// adopts is set if the owner takes over objects without an owner.
	adopts     bool
	isDeclared func(handler string) bool
	// found is the object, and resource is that of kubectl.
	found    *unstructured.Unstructured
	resource string
}

func (r *run) ownership(ch *child, found *unstructured.Unstructured) ownership {
	resource := schema.GroupResource{Group: ch.resource.Group, Resource: ch.resource.Plural}
	return ownership{r.Owner, r.hashes, r.Options.AdoptExisting, r.IsDeclared, found, resource.String()}
}

// check returns an error unless the owner may take over an object without its label.
func (o ownership) check(live *fact) error {
	parent := o.owner.Parent
	byParent := live.controller == parent.UID || live.marks.Parent == parent.String() && live.controller == ""
	switch {
	case live.isControlledByOther(parent.UID):
		return o.refuse(live, "another controller, "+ControllerIn(o.found), "rename the child, or, if that controller does not need the object, delete it: "+o.remove())
	case o.hasLostLabel(live):
		return nil
	case live.owner == "" && o.adopts:
		return nil
	case live.owner == "":
		return o.refuse(live, "no owner", "declare the handler with kopf.AdoptExisting() to take it over, rename the child, or delete the object: "+o.remove())
	case byParent && live.marks.Handler != o.owner.Handler && o.isDeclared(live.marks.Handler):
		return o.refuse(live, fmt.Sprintf("the handler %q of the same parent", live.marks.Handler), "return it in one of the two handlers only")
	case byParent && o.adopts:
		return nil
	case byParent && live.marks.Handler == o.owner.Handler && live.isApplied():
		return o.refuse(live, "a former parent of this name", "declare the handler with kopf.AdoptExisting() to take it over, rename the child, or delete the object: "+o.remove())
	case byParent && live.marks.Handler == o.owner.Handler:
		return o.refuse(live, "the same handler of an operator with another name", "add the name to settings.FormerNames if this operator was renamed, or rename the child")
	case byParent:
		return o.refuse(live, fmt.Sprintf("the handler %q, which is not declared anymore", live.marks.Handler),
			fmt.Sprintf("declare the handler with kopf.ID(%q) if it was renamed, or with kopf.AdoptExisting() to take it over", live.marks.Handler))
	default:
		return o.refuse(live, cmp.Or(live.marks.Parent, "another parent"), "rename the child: an object has one parent")
	}
}

// hasLostLabel reports whether the object is a child of the owner whose label another client has
// removed or changed. The owner reference or the annotation says so.
func (o ownership) hasLostLabel(live *fact) bool {
	if live.controller == o.owner.Parent.UID && live.owner == "" {
		return true
	}
	return live.isApplied() && slices.ContainsFunc(o.hashes, func(owner string) bool {
		return live.detail().binding == bindingOf(owner, live.Key)
	})
}

func (o ownership) refuse(live *fact, owner, remedy string) error {
	return &convergence.NotOursError{Child: live.Key, Owner: owner, Parent: described(o.owner.Parent.String(), o.owner.Parent.UID), Remedy: remedy}
}

// remove returns the command that deletes the object.
func (o ownership) remove() string {
	command := "kubectl delete " + o.resource + " " + o.found.GetName()
	if namespace := o.found.GetNamespace(); namespace != "" {
		command += " -n " + namespace
	}
	return command
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
