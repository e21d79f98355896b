package converge

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-go/kopf/pkg/model/convergence"
	"github.com/kopf-go/kopf/pkg/model/object"
)

// Parent is an object with children.
type Parent struct {
	Key object.Key
	UID types.UID
	GVK schema.GroupVersionKind
}

// String returns "KopfExample.kopf.dev namespace/name".
func (p Parent) String() string {
	return convergence.Describe(p.GVK.GroupKind(), p.Key.Namespace, p.Key.Name)
}

// isNameOf reports whether an owner reference in the namespace names an object of the kind and the name of the
// parent. With another uid, that is one that was deleted.
func (p Parent) isNameOf(reference *metav1.OwnerReference, namespace string) bool {
	return reference != nil && p.reaches(namespace) && reference.Name == p.Key.Name &&
		schema.FromAPIVersionAndKind(reference.APIVersion, reference.Kind).GroupKind() == p.GVK.GroupKind()
}

// reaches reports whether the garbage collector deletes a child of the namespace together with
// the parent.
func (p Parent) reaches(namespace string) bool {
	return p.Key.Namespace == "" || p.Key.Namespace == namespace
}

// Owner is one handler of one parent. Each child has exactly one.
type Owner struct {
	// Operator is the name of the operator, which is also its field manager. Two operators
	// can have handlers of the same name for the same parents.
	Operator string
	Parent   Parent
	Handler  string
}

// hashSize is the number of bytes of the hashes on children.
const hashSize = 16

// Hash returns the value of the label of the children.
func (o Owner) Hash() string {
	return hashOf([]string{o.Operator, string(o.Parent.UID), o.Handler})
}

// hashOf returns the hash of a value as JSON, which is deterministic: the keys are sorted.
func hashOf(value any) string {
	text, _ := json.Marshal(value) // it was decoded from JSON, or consists of texts
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:hashSize])
}

// claim says which objects an owner has, or may have.
type claim struct {
	owner Owner
	// hashes are the values that the label of its children can have: that of new children, and
	// those of children that were created when the operator had another name. These keep it: the
	// label is a part of what is applied, so another one would cost a write.
	hashes []string
	// adopts is set if the owner takes over objects without an owner.
	adopts     bool
	isDeclared func(handler string) bool
}

func newClaim(call Call, formerNames []string) claim {
	c := claim{owner: call.Owner, hashes: []string{call.Owner.Hash()}, adopts: call.Options.AdoptExisting, isDeclared: call.IsDeclared}
	for _, name := range formerNames {
		former := call.Owner
		former.Operator = name
		c.hashes = append(c.hashes, former.Hash())
	}
	return c
}

// marks are what the annotation of a child says about it. People read it, too.
type marks struct {
	// Wanted is the hash of what was applied last.
	Wanted string `json:"wanted"`
	// Handler and Parent name the owner, whose hash is the label.
	Handler string `json:"handler"`
	Parent  string `json:"parent"`
}

// annotation is all that the annotation of a child has: nearly all children have no accepted fields.
type annotation struct {
	marks
	// Binding is a hash of the owner and of the child. It tells a child whose label others have
	// changed from the copy of another child.
	Binding  string   `json:"binding"`
	Accepted accepted `json:"accepted,omitempty"`
}

// bindingOf returns the binding of a child to its owner, which is the hash of one.
func bindingOf(owner string, child Key) string {
	return hashOf([]string{owner, child.String()})[:hashSize]
}

// readAnnotation reads the annotation. A text that cannot be read is no annotation.
func readAnnotation(text string) (a annotation) {
	_ = json.Unmarshal([]byte(text), &a)
	return a
}

func (a annotation) text() string {
	text, _ := json.Marshal(a)
	return string(text)
}

// applied is a child as it is applied.
type applied struct {
	*child
	content map[string]any
	hash    string // of the content with the accepted fields
	label   string
	// accepted are the fields that are left out because they are left to others. Complete is the
	// content with them; nil if there are none.
	accepted accepted
	complete map[string]any
	// version is the version of the child about which a handler has decided. Another version
	// needs another decision. It is empty without one.
	version string
}

// mark adds the label, the owner reference, and the annotation, and leaves out the accepted
// fields. A child that must be kept, or that the garbage collector does not reach, has no owner
// reference.
func (c claim) mark(ch *child, label string, keep bool, fields accepted) applied {
	u := (&unstructured.Unstructured{Object: ch.content}).DeepCopy()
	labels := u.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[convergence.OwnerLabel] = label
	u.SetLabels(labels)
	parent := c.owner.Parent
	if parent.reaches(ch.Namespace) && !keep && !ch.keep {
		version, kind := parent.GVK.ToAPIVersionAndKind()
		all, _, _ := unstructured.NestedSlice(u.Object, "metadata", "ownerReferences")
		all = slices.DeleteFunc(all, func(reference any) bool {
			set, _ := reference.(map[string]any)
			return set["uid"] == string(parent.UID)
		})
		_ = unstructured.SetNestedSlice(u.Object, append(all, map[string]any{
			"apiVersion": version, "kind": kind, "name": parent.Key.Name, "uid": string(parent.UID),
			"controller": true, "blockOwnerDeletion": true,
		}), "metadata", "ownerReferences")
	}
	a := applied{child: ch, content: u.Object, label: label, hash: hashOf(u.Object)}
	if len(fields) > 0 {
		a.complete = u.DeepCopy().Object
		a.accepted = fields.leaveOut(u.Object)
	}
	annotations := u.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[convergence.MarksAnnotation] = annotation{marks{Wanted: a.hash, Handler: c.owner.Handler, Parent: parent.String()}, bindingOf(label, ch.Key), a.accepted}.text()
	u.SetAnnotations(annotations)
	return a
}
