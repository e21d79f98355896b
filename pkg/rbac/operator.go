package rbac

import (
	"cmp"
	"slices"
	"strings"

	"github.com/kopf-go/kopf/pkg/model/selector"
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

// peeringGroups are the API groups in which peerings can be.
var peeringGroups = []string{"kopf.dev", "zalando.org"}

// addPeering adds the rules for the peering objects that the cluster can have.
func (d *derivation) addPeering() {
	p := d.Settings.Peering
	if p.Standalone {
		return
	}
	plural, namespaces := "clusterkopfpeerings", []string{""}
	scope := selector.Namespaces(d.Settings.Scope.Namespaces)
	switch {
	case p.ClusterWide:
	case len(p.Namespaces) > 0:
		plural, namespaces = "kopfpeerings", p.Namespaces
	case len(scope) > 0:
		plural, namespaces = "kopfpeerings", d.namespaces(true)
	}
	for _, group := range peeringGroups {
		if !slices.ContainsFunc(d.Snapshot.Resources, func(r selector.Resource) bool { return r.Group == group && r.Plural == plural }) {
			continue
		}
		for _, namespace := range namespaces {
			d.roles.add(namespace, Rule{
				Group: group, Resources: []string{plural}, Names: []string{p.Name}, Verbs: []string{"get", "list", "watch", "patch"},
				Reason: "Other operators of the same objects. The name must match --peering.",
			})
		}
	}
}

// addReplicas adds the rules for the lease.
func (d *derivation) addReplicas() {
	r := d.Settings.Replicas
	if !r.LeaderElection {
		return
	}
	namespace := cmp.Or(r.LeaseNamespace, d.Namespace)
	const group = "coordination.k8s.io"
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

// addAdmission adds the rules for the webhook configurations, and for the certificate.
func (d *derivation) addAdmission() {
	const group = "admissionregistration.k8s.io"
	a, configurations := d.Settings.Admission, []string{"validatingwebhookconfigurations", "mutatingwebhookconfigurations"}
	if a.Managed != "" {
		d.roles.add("", Rule{
			Group: group, Resources: configurations, Verbs: []string{"create"},
			Reason: "The webhook configurations. Kubernetes cannot restrict create to a name. Leave it out if both exist.",
		})
		d.roles.add("", Rule{
			Group: group, Resources: configurations, Names: []string{a.Managed}, Verbs: []string{"get", "patch"},
			Reason: "The webhook configurations. The name must match settings.Admission.Managed.",
		})
	}
	server, ok := a.Server.(servers.Server)
	if namespace, name, found := strings.Cut(server.Secret, "/"); ok && found {
		d.roles.add(namespace, Rule{Resources: []string{"secrets"}, Verbs: []string{"create"}, Reason: "The certificate that the replicas share. Kubernetes cannot restrict create to a name."})
		d.roles.add(namespace, Rule{Resources: []string{"secrets"}, Names: []string{name}, Verbs: []string{"get", "update"}, Reason: "The certificate that the replicas share."})
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
