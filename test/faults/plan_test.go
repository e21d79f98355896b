package faults

import (
	"fmt"
	"strings"
)

// plan is one experiment: a scenario with a fault at one of its writes.
type plan struct {
	scenario string
	write    int    // counted from 1 over the entire scenario; 0 for no fault
	fault    string // a key of faults; empty for none
}

func (p plan) String() string {
	if p.fault == "" {
		return p.scenario
	}
	return fmt.Sprintf("%s/k=%d/%s", p.scenario, p.write, p.fault)
}

// parsePlan parses the result of String.
func parsePlan(text string) (plan, error) {
	name, rest, faulty := strings.Cut(text, "/")
	p := plan{scenario: name}
	if _, known := scenarios[name]; !known {
		return p, fmt.Errorf("there is no scenario %q in the plan %q", name, text)
	}
	if !faulty {
		return p, nil
	}
	if _, err := fmt.Sscanf(rest, "k=%d/%s", &p.write, &p.fault); err != nil {
		return p, fmt.Errorf("the plan %q is not like life/k=2/crash-after: %w", text, err)
	}
	if _, known := faults[p.fault]; !known {
		return p, fmt.Errorf("there is no fault %q in the plan %q", p.fault, text)
	}
	return p, nil
}
