package operator

import (
	"cmp"
	"os"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-go/kopf/pkg/settings"
)

// leaseOf is the lease by which replicas elect their leader; empty: they do not.
func leaseOf(r settings.Replicas) types.NamespacedName {
	if !r.LeaderElection {
		return types.NamespacedName{}
	}
	return types.NamespacedName{Namespace: cmp.Or(r.LeaseNamespace, podNamespace()), Name: r.LeaseName}
}

// nameOf is a lease as people write it; empty, if it is.
func nameOf(lease types.NamespacedName) string {
	if lease.Name == "" {
		return ""
	}
	return lease.String()
}

// podNamespace is where the operator runs; empty outside of a cluster.
func podNamespace() string {
	text, err := os.ReadFile("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}
