package reconcile

import (
	"k8s.io/apimachinery/pkg/types"
)

// Key names an object in the queue: its resource, as selector.Resource.String
// has it, and its name. Whether it is still the same object, its uid tells.
type Key struct {
	Resource string
	types.NamespacedName
}

// String is the key for log lines.
func (k Key) String() string { return k.Resource + "/" + k.NamespacedName.String() }
