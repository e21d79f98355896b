package configurations

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/kopf-go/kopf/pkg/model/selector"
	"github.com/kopf-go/kopf/pkg/settings"
)

// Options describe the operator that the configurations belong to.
type Options struct {
	// Name is the name of both configurations, and the suffix of the names of the
	// webhooks. Empty: the configurations are not managed.
	Name string
	// ManifestName is that name in the manifest of configurations that are not managed.
	// Default: DefaultManifestName.
	ManifestName string
	// Namespaces are the namespaces that the operator serves. Empty: all.
	Namespaces []string
	// OwnNamespace is the namespace in which the operator runs, if the objects there
	// must not be reviewed by the operator. Empty: no namespace is excluded.
	OwnNamespace string
	// Lease is the lease of the leader election, which is never reviewed by the
	// operator. Empty: there is none.
	Lease types.NamespacedName
	// Timeout is how long an API server waits for an answer, in whole seconds.
	// Default: settings.DefaultAdmissionTimeout.
	Timeout time.Duration
	// ManifestFile is the file for the manifest that a person must apply if the
	// configurations are not managed. Empty: the manifest is logged.
	ManifestFile string
}

// OptionsFor returns the options of an operator. podNamespace is empty for an operator
// outside of a cluster; lease is empty for an operator without leader election.
func OptionsFor(s settings.Settings, podNamespace string, lease types.NamespacedName) Options {
	manifestName := s.Name // tells operators apart, if it can be the name of an object
	if len(validation.IsDNS1123Subdomain(s.Name)) > 0 {
		manifestName = DefaultManifestName
	}
	options := Options{
		ManifestName: manifestName,
		Name:         s.Admission.Managed, OwnNamespace: podNamespace, Lease: lease,
		Timeout: s.Admission.Timeout, ManifestFile: s.Admission.ManifestFile,
	}
	if s.Admission.IncludeOwnNamespace || slices.Contains(s.Scope.Namespaces, podNamespace) {
		options.OwnNamespace = ""
	}
	if scope := selector.Namespaces(s.Scope.Namespaces); len(scope.Patterns()) == 0 {
		options.Namespaces = scope.Names() // Kubernetes does not support patterns
	}
	return options
}
