package object

import (
	"strings"

	"github.com/tidwall/gjson"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Owner is an owner reference: the kind in all its versions, and the uid, which distinguishes
// a recreated owner from its predecessor.
type Owner struct {
	schema.GroupKind
	UID types.UID
}

// Owners returns the owner references, controller or not. It decodes nothing else.
func (s *Snapshot) Owners() []Owner {
	var owners []Owner
	gjson.GetBytes(s.json(), "metadata.ownerReferences").ForEach(func(_, reference gjson.Result) bool {
		group, _, isGrouped := strings.Cut(reference.Get("apiVersion").String(), "/")
		if !isGrouped {
			group = "" // the core group: "v1"
		}
		kind := reference.Get("kind").String()
		uid := reference.Get("uid").String()
		if uid != "" {
			owners = append(owners, Owner{schema.GroupKind{Group: group, Kind: kind}, types.UID(strings.Clone(uid))})
		}
		return true
	})
	return owners
}

// Labels decodes the labels. It returns nil if there are none.
func (s *Snapshot) Labels() map[string]string { return s.stringMap("metadata.labels") }
