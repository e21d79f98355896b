package converge

import (
	"regexp"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// serviceKind is the kind whose objects take ports and addresses that no other object may have.
var serviceKind = schema.GroupKind{Kind: "Service"}

// withoutAllocations returns a copy of a Service without what the one in the cluster has taken for
// itself: its node ports and addresses. They are free when it is deleted, and
// a dry run of its replacement would find them taken.
func withoutAllocations(content, live map[string]any) map[string]any {
	u := (&unstructured.Unstructured{Object: content}).DeepCopy()
	spec, _ := u.Object["spec"].(map[string]any)
	current, _, _ := unstructured.NestedMap(live, "spec")
	if ip, found := spec["clusterIP"]; found && ip != "None" && ip == current["clusterIP"] {
		delete(spec, "clusterIP")
		delete(spec, "clusterIPs")
	}
	if port, found := spec["healthCheckNodePort"]; found && port == current["healthCheckNodePort"] {
		delete(spec, "healthCheckNodePort")
	}
	taken := map[any]bool{}
	for _, port := range mappingsIn(current["ports"]) {
		taken[port["nodePort"]] = true
	}
	for _, port := range mappingsIn(spec["ports"]) {
		if taken[port["nodePort"]] {
			delete(port, "nodePort")
		}
	}
	return u.Object
}

// mappingsIn returns the items of a list that are mappings.
func mappingsIn(list any) (found []map[string]any) {
	items, _ := list.([]any)
	for _, item := range items {
		if m, ok := item.(map[string]any); ok {
			found = append(found, m)
		}
	}
	return found
}

var (
	exceededQuota = regexp.MustCompile(`exceeded quota: \S+, requested: (\S+), used: (\S+), limited: (\S+)$`)
	oneObject     = regexp.MustCompile(`^(count/\S+|configmaps|replicationcontrollers|secrets|services|services\.loadbalancers|services\.nodeports)=1$`)
)

// isCountedByQuota reports whether an object was refused only because it would be one too many: as
// many exist as there may be. A replacement is not one more, because its predecessor is
// deleted first. Quotas are checked after everything else. Those of pods can also be about what
// they consume.
func isCountedByQuota(err error) bool {
	if !apierrors.IsForbidden(err) {
		return false
	}
	found := exceededQuota.FindStringSubmatch(err.Error())
	return len(found) == 4 && found[2] == found[3] && !strings.Contains(found[1], "count/pods=") &&
		!slices.ContainsFunc(strings.Split(found[1], ","), func(item string) bool { return !oneObject.MatchString(item) })
}
