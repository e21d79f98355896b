package selector

import "k8s.io/apimachinery/pkg/runtime/schema"

// Complete returns the group, the version, and the name of a selector for one resource that has all
// three. It reports false for all others, whose meaning depends on the cluster. The name is the
// plural, the kind, or another one: the cluster knows.
func (s Selector) Complete() (gv schema.GroupVersion, name string, ok bool) {
	if !s.Specific() || !s.grouped || s.version == "" {
		return gv, "", false
	}
	return schema.GroupVersion{Group: s.group, Version: s.version}, s.name, true
}
