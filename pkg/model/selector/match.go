package selector

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// criterion is the property of a resource that is compared.
type criterion int

const (
	nothing criterion = iota
	anyName
	kind
	plural
	singular
	shortName
	category
	everything
	callback
)

// Specific reports whether the selector means one resource, so that several matches are a
// mistake.
func (s Selector) Specific() bool { return s.by >= anyName && s.by <= shortName }

// Covers reports whether the selector includes the group and version. If not, the
// resources of that version do not affect the selector.
func (s Selector) Covers(gv schema.GroupVersion) bool {
	return s.by != nothing &&
		(!s.grouped || s.group == gv.Group) &&
		(s.version == "" || s.version == gv.Version)
}

// Match reports whether the selector matches the resource, regardless of the other
// resources in the cluster.
func (s Selector) Match(r Resource) bool {
	return s.Covers(r.GroupVersion()) && s.matchesVersion(r) && s.matchesName(r) && (s.Specific() || !r.isEvent())
}

// matchesVersion excludes the other versions of a resource, which contain the same objects.
// Callbacks decide for themselves.
func (s Selector) matchesVersion(r Resource) bool {
	return r.Preferred || s.version != "" || s.by == callback
}

func (s Selector) matchesName(r Resource) bool {
	switch s.by {
	case anyName:
		return slices.Contains(r.names(), s.name)
	case kind:
		return s.name == r.Kind
	case plural:
		return s.name == r.Plural
	case singular:
		return s.name == r.Singular
	case shortName:
		return slices.Contains(r.ShortNames, s.name)
	case category:
		return slices.Contains(r.Categories, s.name)
	case everything:
		return true
	case callback:
		return (*s.test)(r)
	default:
		return false
	}
}
