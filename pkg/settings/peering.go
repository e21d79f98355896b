package settings

import (
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/validation"
)

// The defaults of the settings of Peering.
const (
	DefaultPeeringName     = "default"
	DefaultPeeringLifetime = 60 * time.Second
	// DevelopmentPriority is the priority of an operator on a developer's machine: it
	// pauses the deployed operator.
	DevelopmentPriority = 666
)

// minPeeringLifetime is the unit of the records' lifetimes.
const minPeeringLifetime = time.Second

// Peering configures how operators for the same objects find each other, so that only the
// one with the highest priority is active, and the others pause. They share a peering object:
// a ClusterKopfPeering if the operator serves all namespaces, and otherwise a KopfPeering in
// each of its namespaces, unless ClusterWide or Namespaces say otherwise.
//
// Specification: Peering.
type Peering struct {
	// Name is the name of the peering object. Operators with different peering objects do
	// not see each other. Default: DefaultPeeringName.
	Name string
	// ClusterWide uses the ClusterKopfPeering, even if the operator serves only some
	// namespaces. Default: false.
	ClusterWide bool
	// Namespaces uses the KopfPeerings of these namespaces, whichever namespaces the operator
	// serves. Default: by the scope of the operator.
	Namespaces []string
	// Identity names the entry of the operator. Operators with the same identity do not
	// see each other. Default: $POD_ID, or else user@host with a random part.
	Identity string
	// Mandatory pauses the operator as long as the peering object does not exist. Default:
	// false; without a peering object, the operator is active.
	Mandatory bool
	// Standalone ignores other operators, even if there is a peering object. Default: false.
	// Two operators that change the same objects can revert each other's changes.
	Standalone bool
	// Priority decides which operator is active: the one with the highest priority.
	// Operators with the same priority all pause. Default: 0.
	Priority int
	// Lifetime is how long other operators consider this one alive after its last
	// keep-alive. The operator sends keep-alives a little more often. In whole seconds;
	// fractions are rounded up. Default: DefaultPeeringLifetime.
	Lifetime time.Duration
	// Stealth does not log the keep-alives. Default: false.
	Stealth bool
}

func (p *Peering) fill() {
	fill(&p.Name, DefaultPeeringName)
	fill(&p.Lifetime, DefaultPeeringLifetime)
}

func (p Peering) validate() error {
	var problems []error
	if faults := validation.IsDNS1123Subdomain(p.Name); p.Name != "" && len(faults) > 0 {
		problems = append(problems, fmt.Errorf("settings.Peering.Name %q is not a valid name of an object: %s", p.Name, faults[0]))
	}
	if p.Lifetime != 0 && p.Lifetime < minPeeringLifetime {
		problems = append(problems, fmt.Errorf("settings.Peering.Lifetime is less than a second: %v", p.Lifetime))
	}
	if p.Standalone && p.Mandatory {
		problems = append(problems, errors.New("settings.Peering is both Standalone and Mandatory: choose one"))
	}
	if p.ClusterWide && len(p.Namespaces) > 0 {
		problems = append(problems, errors.New("settings.Peering has both ClusterWide and Namespaces: choose one"))
	}
	for _, namespace := range p.Namespaces {
		if faults := validation.IsDNS1123Label(namespace); len(faults) > 0 {
			problems = append(problems, fmt.Errorf("settings.Peering.Namespaces has %q, which is not a valid name of a namespace: %s", namespace, faults[0]))
		}
	}
	if !utf8.ValidString(p.Identity) {
		problems = append(problems, fmt.Errorf("settings.Peering.Identity is not valid UTF-8: %q", p.Identity))
	}
	return errors.Join(problems...)
}
