package operator

import (
	"cmp"
	"os"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/kopf-go/kopf/pkg/internal/program"
	"github.com/kopf-go/kopf/pkg/settings"
)

// fieldManager returns the field manager of the writes of the operator. It outlives the process, so it
// does not depend on the name of the program.
func fieldManager(s settings.Settings) string { return cmp.Or(s.Name, settings.DefaultName) }

// operatorName returns the name of the operator in the metrics.
func operatorName(s settings.Settings) string {
	return cmp.Or(s.Name, program.Name(), settings.DefaultName)
}

// eventComponent returns the source of the events: the first name that the API server accepts.
func eventComponent(s settings.Settings) string {
	for _, name := range []string{s.Posting.Component, s.Name, program.Name()} {
		if len(validation.IsQualifiedName(name)) == 0 {
			return name
		}
	}
	return settings.DefaultPostingComponent
}

// leaseOf returns the lease of the replicas, or an empty name if there is only one.
func leaseOf(r settings.Replicas) types.NamespacedName {
	if !r.LeaderElection && r.Shards == 0 {
		return types.NamespacedName{}
	}
	return types.NamespacedName{Namespace: cmp.Or(r.LeaseNamespace, podNamespace()), Name: r.LeaseName}
}

// leaseName returns the lease of the replicas as namespace and name, or "" if there is only one.
func leaseName(r settings.Replicas) string {
	if !r.LeaderElection && r.Shards == 0 {
		return ""
	}
	return leaseOf(r).String()
}

// podNamespace returns the namespace in which the operator runs, or "" outside a cluster.
func podNamespace() string {
	text, err := os.ReadFile("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}
