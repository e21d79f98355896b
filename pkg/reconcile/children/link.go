package children

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-go/kopf/pkg/model/object"
)

// Link is what a child and its parent have in common. Compare links with ==.
type Link struct {
	by    string // "owner Kind.group" or "label key"; all links of one sort share the text
	value string
}

// OwnedBy returns the link of the children with an owner reference to a parent.
func OwnedBy(kind schema.GroupKind, uid types.UID) Link {
	return Link{ownerSort(kind), string(uid)}
}

// LabeledWith returns the link of the children that have a label with the value.
func LabeledWith(key, value string) Link { return Link{labelSort(key), value} }

// String returns the link in the form of log lines.
func (l Link) String() string { return l.by + "=" + l.value }

func ownerSort(kind schema.GroupKind) string { return "owner " + kind.String() }

func labelSort(key string) string { return "label " + key }

// sorts are the links that the index keeps.
type sorts struct {
	owners map[schema.GroupKind]string
	labels map[string]string // by key
}

// of returns the links of a child.
func (s *sorts) of(child *object.Snapshot) []Link {
	var links []Link
	add := func(link Link) {
		if !slices.Contains(links, link) {
			links = append(links, link)
		}
	}
	if len(s.owners) > 0 {
		for _, owner := range child.Owners() {
			if by, wanted := s.owners[owner.GroupKind]; wanted {
				add(Link{by, string(owner.UID)})
			}
		}
	}
	if len(s.labels) > 0 {
		labels := child.Labels()
		for key, by := range s.labels {
			if value := labels[key]; value != "" {
				add(Link{by, value})
			}
		}
	}
	return links
}
