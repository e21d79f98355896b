package settings

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/kopf-go/kopf/pkg/model/selector"
)

// Scope configures which namespaces the operator watches. It watches cluster-scoped
// resources in any case.
//
// Specification: Scopes.
type Scope struct {
	// Namespaces are names and patterns of namespaces. The operator watches each namespace
	// separately. See selector.Namespaces for patterns and for label selectors ("labels:team=web"); they require
	// the permission to list and watch namespaces. Default: none, which means one watch of the whole cluster.
	Namespaces []string
}

// Scanning configures the discovery of resources and namespaces.
type Scanning struct {
	// Disabled stops the discovery after the start. The operator does not notice resources that are
	// installed, changed, or removed later. It does not watch custom resource definitions and
	// namespaces, and does not support patterns in the scope. Default: false.
	Disabled bool
	// Interval is the longest pause between two discoveries while a resource is missing, an
	// API group is unavailable, or the operator has no permission to watch custom resource
	// definitions. A discovery takes two small requests. Default: DefaultScanningInterval.
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
			problems = append(problems, fmt.Errorf("settings.Scope.Namespaces has %q, which is not a valid name of a namespace: %s", name, faults[0]))
		}
	}
	if err := selector.Namespaces(s.Scope.Namespaces).Validate(); err != nil {
		problems = append(problems, fmt.Errorf("settings.Scope.Namespaces: %w", err))
	}
	if patterns := selector.Namespaces(s.Scope.Namespaces).Patterns(); s.Scanning.Disabled && len(patterns) > 0 {
		problems = append(problems, fmt.Errorf(
			"settings.Scope.Namespaces has patterns (%q), but settings.Scanning.Disabled disables the discovery of namespaces: list the names", patterns))
	}
	return errors.Join(append(problems, notNegative("Scanning.Interval", s.Scanning.Interval))...)
}
