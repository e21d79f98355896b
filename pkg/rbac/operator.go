package rbac

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/pkg/model/selector"
	"github.com/kopf-go/kopf/pkg/reconcile/discovery"
	"github.com/kopf-go/kopf/pkg/webhook/servers"
)

// definitionsGroup is the group of definitions of resources.
const definitionsGroup = "apiextensions.k8s.io"

// addScanning adds the rules for noticing new resources and namespaces.
func (d *derivation) addScanning() {
	if d.Settings.Scanning.Disabled {
		return
	}
	scope := selector.Namespaces(d.Settings.Scope.Namespaces)
	if len(scope) == 0 {
		d.roles.add("", Rule{
			Group: definitionsGroup, Resources: []string{"customresourcedefinitions"}, Verbs: []string{"list", "watch"},
			Reason: "Resources that are installed later are noticed at once.",
		})
	}
	if len(scope.Patterns()) > 0 {
		d.roles.add("", Rule{
			Resources: []string{"namespaces"}, Verbs: []string{"list", "watch"},
			Reason: "The namespaces that match " + strings.Join(scope.Patterns(), ", ") + ". To permit less, bind the rules for objects in each of them with a RoleBinding.",
		})
	}
}

// addConditions adds the rule for checking that a resource has the fields of the conditions. It is
// optional: without it, the first write shows whether the fields are stored.
func (d *derivation) addConditions() {
	var names []string
	for _, found := range discovery.Resolve(d.Handlers.OfKind(handler.Conditions).Selectors(), d.Snapshot).Resources {
		names = append(names, found.Plural+"."+found.Group)
	}
	if len(names) > 0 {
		d.roles.add("", Rule{
			Group: definitionsGroup, Resources: []string{"customresourcedefinitions"}, Names: names, Verbs: []string{"get"},
			Reason: "Conditions: at the start, the definition is checked for their fields. Without this rule, the first write shows whether they are stored.",
		})
	}
}

// peeringGroups are the API groups in which peerings can be, in one version.
var peeringGroups = []string{"kopf.dev", "zalando.org"}

const peeringVersion = "v1"

// addPeering adds the rules for the peering objects that the cluster can have.
func (d *derivation) addPeering() {
	p := d.Settings.Peering
	if p.Standalone {
		return
	}
	plural := "clusterkopfpeerings"
	namespaces := []string{""}
	scope := selector.Namespaces(d.Settings.Scope.Namespaces)
	switch {
	case p.ClusterWide:
	case len(p.Namespaces) > 0:
		plural = "kopfpeerings"
		namespaces = p.Namespaces
	case len(scope) > 0:
		plural = "kopfpeerings"
		namespaces = d.namespaces(true)
	}
	for _, group := range peeringGroups {
		i := slices.IndexFunc(d.Snapshot.Resources, func(r selector.Resource) bool {
			return r.Group == group && r.Version == peeringVersion && r.Plural == plural
		})
		if i < 0 {
			continue
		}
		for _, namespace := range namespaces {
			d.addPeeringObject(namespace, d.Snapshot.Resources[i])
		}
	}
}

// addPeeringObject adds the rules for a peering object. Its status can be a subresource.
func (d *derivation) addPeeringObject(namespace string, r selector.Resource) {
	const reason = "Other operators of the same objects. The name must match --peering."
	names := []string{d.Settings.Peering.Name}
	if !r.Status {
		d.roles.add(namespace, Rule{Group: r.Group, Resources: []string{r.Plural}, Names: names, Verbs: []string{"get", "list", "watch", "patch"}, Reason: reason})
		return
	}
	d.roles.add(namespace, Rule{Group: r.Group, Resources: []string{r.Plural}, Names: names, Verbs: []string{"get", "list", "watch"}, Reason: reason})
	d.roles.add(namespace, Rule{Group: r.Group, Resources: []string{r.Plural + "/status"}, Names: names, Verbs: []string{"patch"}, Reason: reason})
}

// addReplicas adds the rules for the leases.
func (d *derivation) addReplicas() {
	r := d.Settings.Replicas
	namespace := cmp.Or(r.LeaseNamespace, d.Namespace)
	const group = "coordination.k8s.io"
	switch {
	case r.Shards > 0:
		// The names of those of replicas are random. A rule with the other names would restrict nothing.
		d.roles.add(namespace, Rule{
			Group: group, Resources: []string{"leases"}, Verbs: []string{"get", "list", "watch", "create", "update", "delete"},
			Reason: "The leases of shards and of replicas. Those of replicas have random names, and Kubernetes cannot restrict a rule to the beginning of names. " +
				"If other leases in the namespace must be out of reach, give these another one by --lease-namespace.",
		})
	case r.LeaderElection:
		d.roles.add(namespace, Rule{
			Group: group, Resources: []string{"leases"}, Verbs: []string{"create"},
			Reason: "The lease of the leader. Kubernetes cannot restrict create to a name.",
		})
		d.roles.add(namespace, Rule{
			Group: group, Resources: []string{"leases"}, Names: []string{r.LeaseName}, Verbs: []string{"get", "update"},
			Reason: "The lease of the leader. The name must match --lease-name.",
		})
		d.roles.add(namespace, Rule{Resources: []string{"events"}, Verbs: []string{"create"}, Reason: "An event names each new leader."})
	}
}

// addAdmission adds the rules for the webhook configurations, and for the certificate.
func (d *derivation) addAdmission() {
	const group = "admissionregistration.k8s.io"
	a := d.Settings.Admission
	configurations := []string{"validatingwebhookconfigurations", "mutatingwebhookconfigurations"}
	hasHandlers := len(d.Handlers.Admission()) > 0
	isCalled := hasHandlers || len(d.Conversions) > 0
	if a.Managed != "" && hasHandlers {
		d.roles.add("", Rule{
			Group: group, Resources: configurations, Verbs: []string{"create"},
			Reason: "The webhook configurations. Kubernetes cannot restrict create to a name. Leave it out if both exist.",
		})
	}
	if a.Managed != "" { // without handlers, those of an earlier version are removed
		d.roles.add("", Rule{
			Group: group, Resources: configurations, Names: []string{a.Managed}, Verbs: []string{"get", "patch"},
			Reason: "The webhook configurations. The name must match settings.Admission.Managed.",
		})
	}
	server, ok := a.Server.(servers.Server)
	if namespace, name, found := strings.Cut(server.Secret, "/"); ok && found && isCalled {
		d.roles.add(namespace, Rule{Resources: []string{"secrets"}, Verbs: []string{"create"}, Reason: "The certificate that the replicas share. Kubernetes cannot restrict create to a name."})
		d.roles.add(namespace, Rule{Resources: []string{"secrets"}, Names: []string{name}, Verbs: []string{"get", "update"}, Reason: "The certificate that the replicas share."})
	}
}

// addConversions adds the rule for the definitions whose objects the operator converts.
func (d *derivation) addConversions() {
	if d.Settings.Admission.Managed == "" || len(d.Conversions) == 0 {
		return
	}
	graphs, problems := d.Conversions.Resolve(d.Snapshot.Resources)
	d.problems = append(d.problems, problems...)
	names := slices.Sorted(maps.Keys(graphs))
	if len(names) > 0 {
		d.roles.add("", Rule{
			Group: definitionsGroup, Resources: []string{"customresourcedefinitions"}, Names: names, Verbs: []string{"get", "patch"},
			Reason: "Conversions: the operator writes spec.conversion of the definitions, because settings.Admission.Managed is set.",
		})
	}
}

// addMetrics adds the rules for the readers of secure metrics.
func (d *derivation) addMetrics() {
	if m := d.Settings.Metrics; m.Address == "" || !m.Secure {
		return
	}
	d.roles.add("", Rule{Group: "authentication.k8s.io", Resources: []string{"tokenreviews"}, Verbs: []string{"create"}, Reason: "Who reads the metrics."})
	d.roles.add("", Rule{Group: "authorization.k8s.io", Resources: []string{"subjectaccessreviews"}, Verbs: []string{"create"}, Reason: "Whether a reader may read the metrics."})
}

// addPage adds the rules for the page of the operator, which reads what no other part of the operator reads.
func (d *derivation) addPage() {
	if d.Settings.Page.Address == "" {
		return
	}
	d.roles.add("", Rule{Group: "authentication.k8s.io", Resources: []string{"tokenreviews"}, Verbs: []string{"create"}, Reason: "Who looks at the page."})
	d.roles.add("", Rule{Group: "authorization.k8s.io", Resources: []string{"subjectaccessreviews"}, Verbs: []string{"create"}, Reason: "Whether a person may look at the page."})
	for _, namespace := range d.eventNamespaces() {
		d.roles.add(namespace, Rule{Resources: []string{"events"}, Verbs: []string{"list"}, Reason: "The page shows the latest events about an object."})
	}
	if r := d.Settings.Replicas; r.LeaderElection && r.Shards == 0 {
		d.roles.add(cmp.Or(r.LeaseNamespace, d.Namespace), Rule{
			Group: "coordination.k8s.io", Resources: []string{"leases"}, Verbs: []string{"list"}, Reason: "The page shows which replica leads.",
		})
	}
}

// eventNamespaces returns the namespaces of the events about handled objects. Those about objects of the cluster are in the
// namespace default.
func (d *derivation) eventNamespaces() []string {
	namespaces := d.namespaces(true)
	watched := d.Handlers.Where(func(h *handler.Declaration) bool { return !h.Kind.IsAdmission() })
	for _, found := range discovery.Resolve(watched.Selectors(), d.Snapshot).Resources {
		if !found.Namespaced && namespaces[0] != "" && !slices.Contains(namespaces, "default") {
			namespaces = append(slices.Clone(namespaces), "default")
		}
	}
	return namespaces
}
