package main

import (
	"go/types"
	"slices"
	"strings"

	"github.com/kopf-go/kopf/hack/source"
)

// protocol contains the files that are mutated without arguments: the writer, the records,
// and the detection of causes, from the most important one.
var protocol = []string{
	"pkg/reconcile/internal/write/",
	"pkg/reconcile/internal/record/",
	"pkg/model/cause/",
	"pkg/reconcile/internal/plan/",
	"pkg/reconcile/facts.go",
	"pkg/reconcile/decision.go",
	"pkg/reconcile/pass.go",
	"pkg/reconcile/vanished.go",
	"pkg/reconcile/objectstate.go",
	"pkg/reconcile/handover.go",
	"pkg/reconcile/call/progress.go",
	"pkg/reconcile/call/stored.go",
}

// isBelow reports whether a file is one of the names, or in a folder that is one of them.
func isBelow(names []string, file string) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		return file == name || strings.HasPrefix(file, strings.TrimSuffix(name, "/")+"/")
	})
}

// kind is a kind of tests, a column of the table.
type kind string

const (
	// unit means the tests of the mutant's package.
	unit kind = "unit"
	// engine means the tests of packages that import it.
	engine kind = "engine"
	// model means random lives of objects, compared with a model.
	model kind = "model"
	// kit means operators in the test kit.
	kit kind = "kit"
	// virtual means operators in virtual time.
	virtual kind = "virtual"
	// sweep means single faults at every place of a cycle, on a real API server.
	sweep kind = "sweep"
	// storm means many faults at random, on a real API server.
	storm kind = "storm"
)

// stage is a set of tests that mutants must pass to survive.
type stage struct {
	kind kind
	pkg  string // of the tests
	// tests and except are patterns of their names. Empty means all, or none.
	tests, except string
}

// runsOperators reports whether the tests are those of whole operators, which take long.
func (s stage) runsOperators() bool { return !slices.Contains([]kind{unit, engine, model}, s.kind) }

const (
	enginePackage = "pkg/reconcile"
	faultsPackage = "test/faults"
	kitPackage    = "pkg/kopftest"
	modelTest     = "TestChangesLieEndToEnd"

	virtualPackage = "test/virtual"
)

var (
	sweepStage = stage{kind: sweep, pkg: faultsPackage, tests: "Test.*(Plans|Lists|Standby).*"}
	stormStage = stage{kind: storm, pkg: faultsPackage, tests: "TestStorm"}
)

// stagesOf returns the stages for the mutants of a package: its own tests, those of the
// packages that import it, the nearest first, the model, those of the test kit, and those in virtual time.
func stagesOf(tree *source.Tree, pkg *source.Package) []stage {
	stages := []stage{{kind: unit, pkg: pkg.Path, except: modelTest}}
	importers := map[*types.Package]bool{pkg.Types: true}
	for _, other := range tree.Packages { // sorted: importers come after what they import
		if !slices.ContainsFunc(other.Types.Imports(), func(imported *types.Package) bool { return importers[imported] }) {
			continue
		}
		importers[other.Types] = true
		if isBelow([]string{enginePackage, "pkg/model"}, other.Path) {
			stages = append(stages, stage{kind: engine, pkg: other.Path, except: modelTest})
		}
	}
	if importers[typesOf(tree, enginePackage)] {
		stages = append(stages,
			stage{kind: model, pkg: enginePackage, tests: "^" + modelTest + "$"},
			stage{kind: kit, pkg: kitPackage},
			stage{kind: virtual, pkg: virtualPackage},
		)
	}
	return stages
}

// typesOf returns a package of the tree, or nil.
func typesOf(tree *source.Tree, path string) *types.Package {
	if pkg := tree.Package(path); pkg != nil {
		return pkg.Types
	}
	return nil
}
