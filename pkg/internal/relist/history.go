package relist

import "k8s.io/apimachinery/pkg/util/resourceversion"

// History follows the versions that a source has shown. The zero value has seen none.
type History struct{ latest string }

// Advance records the version of an event.
func (h *History) Advance(version string) {
	if h.latest == "" || IsOlder(h.latest, version) {
		h.latest = version
	}
}

// Restart records the version of a consistent list. It reports whether the list belongs to another
// history of the cluster than what was seen before it: it is older.
func (h *History) Restart(version string) (another bool) {
	another = IsOlder(version, h.latest)
	h.latest = version
	return another
}

// IsOlder reports whether a version is lower than another one. Versions that cannot be compared are
// not.
func IsOlder(version, than string) bool {
	order, err := resourceversion.CompareResourceVersion(version, than)
	return err == nil && order < 0
}
