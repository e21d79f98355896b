package settings

import (
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
)

// The defaults of the settings of Peering.
const (
	DefaultPeeringName     = "default"
	DefaultPeeringLifetime = 60 * time.Second
	// DevelopmentPriority is that of an operator on a developer's machine: it
	// suppresses what is deployed.
	DevelopmentPriority = 666
)

// minPeeringLifetime is the unit of the records' lifetimes.
const minPeeringLifetime = time.Second

// Peering is how operators that serve the same objects know of each other, so
// that only the one of the highest priority is active and the others pause. They
// meet in an object: a ClusterKopfPeering if the operator serves all namespaces,
// a KopfPeering in each of its namespaces otherwise.
//
// Specification: Peering.
type Peering struct {
	// Name is that of the peering object. Operators of different peering objects
	// do not see each other. Default: DefaultPeeringName, which is there for
	// all operators of a cluster.
	Name string
	// Mandatory pauses the operator as long as the peering object is not there.
	// Default: false; an operator without a peering object serves alone.
	Mandatory bool
	// Standalone serves without regard to other operators, even if there is a
	// peering object. Default: false, for two operators that change the same
	// object without knowing of each other undo each other's work.
	Standalone bool
	// Priority decides who is active: who has the highest one. Operators of the
	// same priority are all paused. Default: 0.
	Priority int
	// Lifetime is how long the others believe that the operator is alive after
	// it was heard of last; it is heard of a little more often. In whole
	// seconds; a fraction is rounded up. Default: DefaultPeeringLifetime: a
	// takeover after a crash may last a minute, and a write a minute costs little.
	Lifetime time.Duration
	// Stealth keeps the regular signs of life out of the log; they are given
	// anyway. Default: false.
	Stealth bool
}

func (p *Peering) fill() {
	fill(&p.Name, DefaultPeeringName)
	fill(&p.Lifetime, DefaultPeeringLifetime)
}

func (p Peering) validate() error {
	var problems []error
	if faults := validation.IsDNS1123Subdomain(p.Name); p.Name != "" && len(faults) > 0 {
		problems = append(problems, fmt.Errorf("settings.Peering.Name %q is no name of an object: %s", p.Name, faults[0]))
	}
	if p.Lifetime != 0 && p.Lifetime < minPeeringLifetime {
		problems = append(problems, fmt.Errorf("settings.Peering.Lifetime is less than a second: %v", p.Lifetime))
	}
	if p.Standalone && p.Mandatory {
		problems = append(problems, errors.New("settings.Peering is both Standalone and Mandatory: choose one"))
	}
	return errors.Join(problems...)
}
