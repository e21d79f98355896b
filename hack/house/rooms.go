package main

import (
	"go/types"
	"path"
	"strings"

	"github.com/kopf-go/kopf/hack/source"
)

// enginePackage holds the engine.
const enginePackage = "pkg/reconcile"

// rooms assigns the engine's files to rooms. A room that is a package by now has the
// path of the package, below the engine's; its files need no entry. The table names the
// files of today, and those of the time before the engine was divided into packages.
var rooms = map[string]string{
	"engine":     "doc engine health measure resource",
	"workers":    "work workers pause",
	"queue":      "internal/queue queue key line",
	"capacity":   "internal/capacity",
	"indexing":   "index listen consumer",
	"watching":   "internal/watch orchestrate follow leave depart served stream warn watch gate",
	"failover":   "catchup failover handover",
	"state":      "memory memo objectstate",
	"pass":       "pass target observe record deliver attend held execute mention eventhandler detect update decision outcome heldobjects requests backgroundsync ensure triggered inspection",
	"reporting":  "internal/report internal/heldobjects internal/requests report internal/undeclared internal/conditions",
	"cycle":      "internal/record internal/revision cycle first",
	"background": "background",
	"children":   "children triggers",
	"writing":    "internal/write write attempt intent",
	"conflicts":  "refuse dispute concede",
}

// drawEngine draws the engine's rooms. Within the engine's package an arrow points
// from a file to another one that declares what it uses: functions, methods, types,
// fields, constants, and variables. For a room that is a package by now, an arrow
// points from every file that imports it. Arrows within a room count, too. Packages
// below the engine that are not in the table are not drawn.
func drawEngine(tree *source.Tree) drawing {
	arrows := map[arrow]int{}
	for one := range references(tree) {
		from, to := roomOf(one.from), roomOf(one.to)
		if from != "" && to != "" {
			arrows[arrow{from, to}]++
		}
	}
	return draw(arrows)
}

// homeless returns the files of the engine's package that have no room. Their arrows
// are not drawn.
func homeless(tree *source.Tree) []string {
	var found []string
	if pkg := tree.Package(enginePackage); pkg != nil {
		for _, file := range pkg.Files {
			if name := path.Base(tree.File(file.Pos())); roomOf(name) == "" {
				found = append(found, name)
			}
		}
	}
	return found
}

// references returns the arrows between the engine's files, and from files to
// packages, by their paths below the engine.
func references(tree *source.Tree) map[arrow]bool {
	found := map[arrow]bool{}
	for _, pkg := range tree.Packages {
		folder, inside := strings.CutPrefix(pkg.Path+"/", enginePackage+"/")
		if !inside {
			continue
		}
		for name, used := range pkg.Info.Uses {
			from := path.Join(folder, path.Base(tree.File(name.Pos())))
			if to := declaredAt(tree, pkg, used); to != "" && to != from && roomOf(from) != "" {
				found[arrow{from, to}] = true
			}
		}
	}
	return found
}

// declaredAt returns the engine's file that declares what is used, or its package
// when that is another one than the user's. It is empty for what is local to a
// function, and for what is not the engine's.
func declaredAt(tree *source.Tree, pkg *source.Package, used types.Object) string {
	if used.Pkg() == nil || isLocal(used) {
		return ""
	}
	below, ours := tree.Below(used.Pkg().Path())
	folder, inside := strings.CutPrefix(below+"/", enginePackage+"/")
	switch {
	case !ours || !inside:
		return ""
	case used.Pkg() == pkg.Types:
		return path.Join(folder, path.Base(tree.File(used.Pos())))
	default:
		return strings.TrimSuffix(folder, "/")
	}
}

// isLocal reports whether the object is declared inside a function. Fields and
// methods are not, and belong to no scope.
func isLocal(used types.Object) bool {
	if used.Parent() == nil {
		variable, ok := used.(*types.Var)
		return ok && !variable.IsField()
	}
	return used.Parent() != used.Pkg().Scope()
}

// roomOf returns the room of a file, or of a package, below the engine.
func roomOf(name string) string {
	for room, entries := range rooms {
		for entry := range strings.FieldsSeq(entries) {
			if name == entry || name == entry+".go" || strings.HasPrefix(name, entry+"/") {
				return room
			}
		}
	}
	return ""
}
