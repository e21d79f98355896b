package selector

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// criterion is what of a resource is compared.
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

// Specific reports whether one resource is meant, so that finding several is a
// mistake.
func (s Selector) Specific() bool { return s.by >= anyName && s.by <= shortName }

// Covers reports whether the group and the version are those of the selector. If
// they are not, the selector is independent of what is there.
func (s Selector) Covers(gv schema.GroupVersion) bool {
	return s.by != nothing &&
		(!s.grouped || s.group == gv.Group) &&
		(s.version == "" || s.version == gv.Version)
}

// Match reports whether the selector fits the resource, regardless of what else
// is in the cluster.
func (s Selector) Match(r Resource) bool {
	return s.Covers(r.GroupVersion()) && s.fitsVersion(r) && s.fitsName(r) && (s.Specific() || !r.isEvent())
}

// fitsVersion keeps the other versions of a resource away: they are the same
// objects. Callbacks decide for themselves.
func (s Selector) fitsVersion(r Resource) bool {
	return r.Preferred || s.version != "" || s.by == callback
}

func (s Selector) fitsName(r Resource) bool {
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
