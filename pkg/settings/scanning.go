package settings

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/kopf-go/kopf/pkg/model/selector"
)

// Scope is which objects the operator looks at. Cluster-scoped resources are
// watched in any case.
//
// Specification: Scopes.
type Scope struct {
	// Namespaces are names and patterns of namespaces, each of which is watched
	// on its own; selector.Namespaces has the form of patterns. What fits a
	// pattern is watched from when it is created until it is gone, which takes
	// the permission to list and watch namespaces; names need none.
	// Default: the whole cluster, watched at once.
	Namespaces []string
}

// Scanning is how the operator finds out what the cluster has: the resources of
// its handlers, and the namespaces of its scope.
type Scanning struct {
	// Disabled stops it after the start: resources that are installed, changed or
	// removed later are not noticed, custom resource definitions and namespaces
	// are not watched, and the scope can have no patterns. Default: false.
	Disabled bool
	// Interval is the longest pause before the cluster is asked again, as long as
	// something is missing, an API group is down, or nothing tells of changes
	// because custom resource definitions may not be watched. Default:
	// DefaultScanningInterval; two small requests that a server does not notice.
	Interval time.Duration
}

// DefaultScanningInterval is the default of Scanning.Interval.
const DefaultScanningInterval = time.Minute

func (s Settings) validateScope() error {
	var problems []error
	if slices.Contains(s.Scope.Namespaces, "") {
		problems = append(problems, fmt.Errorf(
			"settings.Scope.Namespaces has an empty name: %q; leave the list empty to watch all namespaces", s.Scope.Namespaces))
	}
	for _, name := range selector.Namespaces(s.Scope.Namespaces).Names() {
		if faults := validation.IsDNS1123Label(name); name != "" && len(faults) > 0 {
			problems = append(problems, fmt.Errorf("settings.Scope.Namespaces has %q, which is no name of a namespace: %s", name, faults[0]))
		}
	}
	if patterns := selector.Namespaces(s.Scope.Namespaces).Patterns(); s.Scanning.Disabled && len(patterns) > 0 {
		problems = append(problems, fmt.Errorf(
			"settings.Scope.Namespaces has patterns (%q), which need the scanning that settings.Scanning.Disabled excludes: write the names", patterns))
	}
	return errors.Join(append(problems, notNegative("Scanning.Interval", s.Scanning.Interval))...)
}
