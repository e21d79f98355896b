package converge

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

// hashesOf returns the values of the label of the children of an owner: that of new children, and
// those of children that were created when the operator had another name. These keep it: the
// label is a part of what is applied, so another one would cost a write.
func (c *Converger) hashesOf(o Owner) []string {
	hashes := []string{o.Hash()}
	for _, former := range c.FormerManagers {
		o.Operator = former
		hashes = append(hashes, o.Hash())
	}
	return hashes
}

// hashOf returns the hash of a value as JSON, which is deterministic: the keys are sorted.
func hashOf(value any) string {
	text, _ := json.Marshal(value) // it was decoded from JSON, or consists of texts
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:hashSize])
}

// reaches reports whether the garbage collector deletes a child of the namespace together with
// the parent.
func (p Parent) reaches(namespace string) bool {
	return p.Key.Namespace == "" || p.Key.Namespace == namespace
}

// reference returns the owner reference to the parent.
func (p Parent) reference() map[string]any {
	version, kind := p.GVK.ToAPIVersionAndKind()
	return map[string]any{
		"apiVersion": version, "kind": kind, "name": p.Key.Name, "uid": string(p.UID),
		"controller": true, "blockOwnerDeletion": true,
	}
}

// marks is the annotation of a child. People read it, too.
type marks struct {
	// Wanted is the hash of what was applied last.
	Wanted string `json:"wanted"`
	// Handler and Parent name the owner, whose hash is the label.
	Handler string `json:"handler"`
	Parent  string `json:"parent"`
}

// annotation is the whole annotation: nearly all children have no accepted fields.
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

// controllerOf returns the uid of the owner that controls an object.
func controllerOf(references []metav1.OwnerReference) types.UID {
	for _, reference := range references {
		if reference.Controller != nil && *reference.Controller {
			return reference.UID
		}
	}
	return ""
}
