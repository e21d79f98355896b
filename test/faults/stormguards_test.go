package faults

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/kopf-go/kopf/test/testenv"
)

// noticed is the share of the guards that storms must notice: they know nothing about the
// guards. The others are listed in unnoticed.
const noticed = 0.8

// unnoticed are guards that storms do not notice, with the reason.
var unnoticed = map[string]string{
	"Kopf: what it leaves of a cycle that it has finished does not count":              rare,
	"another object of the name: it does not get the edits of earlier event handlers":  rare,
	"another object of the name: the daemons of the earlier one stop":                  rare,
	"the status follows its definition: it is a subresource now":                       definitions,
	"the status follows its definition: it is no longer a subresource":                 definitions,
	"the status follows its definition: the other parts of the edits are not repeated": definitions,
}

// rare is the reason for guards that matter only if several things coincide.
const rare = "some hundred storms rarely come to it"

const definitions = "all storms share the definition of the resource, which does not change"

// allGuards returns all guards without duplicates.
func allGuards() map[string]guard {
	all := maps.Clone(stormGuards)
	known := map[guard]bool{}
	add := func(name string, g guard) {
		g.plan = ""
		if !known[g] {
			known[g], all[name] = true, g
		}
	}
	for _, name := range slices.Sorted(maps.Keys(guards)) {
		add(name, guards[name])
	}
	for _, name := range slices.Sorted(maps.Keys(unitGuards)) {
		add(name, unitGuards[name].guard())
	}
	return all
}

// TestStormGuardsAreWhereTheyAreExpected fails when the code of a guard has changed.
func TestStormGuardsAreWhereTheyAreExpected(t *testing.T) {
	for name, g := range stormGuards {
		if count := strings.Count(g.source(t), g.code); count != 1 {
			t.Errorf("%s: the code of the guard appears %d times in %s:\n%s", name, count, g.file, g.code)
		}
	}
	all := allGuards()
	for name := range unnoticed {
		if _, known := all[name]; !known {
			t.Errorf("there is no guard %q", name)
		}
	}
	if share := 1 - float64(len(unnoticed))/float64(len(all)); share < noticed {
		t.Errorf("%d of %d guards have a reason why storms do not notice their absence", len(unnoticed), len(all))
	}
}

// TestStormNoticesGuards makes storms without each guard, which takes two minutes if they do not
// notice it. It prints which guards they notice, and by which seed:
//
//	go test ./test/faults -run StormNoticesGuards -without-guards -timeout 0 -v
func TestStormNoticesGuards(t *testing.T) {
	if !*withoutGuards {
		t.Log("this takes more than a quarter of an hour: -without-guards")
		return
	}
	all := allGuards()
	binary, numbers := stormBinary(t, all)
	missed := 0
	for _, name := range slices.Sorted(maps.Keys(all)) {
		t.Run(name, func(t *testing.T) {
			storms := exec.Command(binary)
			if numbers[name] == 0 {
				storms = exec.Command(build(t, all[name].overlay(t)))
			}
			storms.Env = append(os.Environ(), "GOMAXPROCS=1", testenv.Server+"="+testenv.InMemory, fmt.Sprintf("%s=%d", missingGuard, numbers[name]))
			breach, called := firstBreach(t, storms)
			reason, explained := unnoticed[name]
			switch {
			case breach != "":
				t.Logf("noticed: %s", breach)
				return
			case !explained:
				t.Error("NOT noticed, for no known reason")
			default:
				t.Logf("NOT noticed: %s", reason)
			}
			missed++
			if !called && numbers[name] != 0 {
				t.Log("its function is never called")
			}
		})
	}
	if share := 1 - float64(missed)/float64(len(all)); share < noticed {
		t.Errorf("storms notice %d of %d guards", len(all)-missed, len(all))
	}
}

// failedSeed matches a violation in a storm, or the end of the program.
var failedSeed = regexp.MustCompile(`seed \d+: .*|(?m)^(fatal error|panic): .*`)

// guardSeeds is the number of storms that must notice a missing guard.
const guardSeeds = "200"

// firstBreach makes storms, and returns the first violation, or "". It reports whether the code
// without the guard was called.
func firstBreach(t *testing.T, storms *exec.Cmd) (breach string, called bool) {
	storms.Args = append(storms.Args, "-test.run", "^TestVirtualStorm$", "-test.timeout", "5m", "-virtual-seeds", guardSeeds, "-share", "1/1", "-until-failure")
	storms.Dir = filepath.Join(root(t), "test", "faults")
	output, err := storms.CombinedOutput()
	breach = string(failedSeed.Find(output))
	if err != nil && breach == "" {
		t.Errorf("the storms fail for another reason:\n%s", output)
	}
	return breach, bytes.Contains(output, []byte(reached))
}
