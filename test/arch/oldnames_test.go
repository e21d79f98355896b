package arch

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// oldNames lists names that this repository replaced with words that engineers search
// for. A line contains the kind, the folder, and the names. A folder with "/..." at the
// end includes everything below it; engine stands for pkg/reconcile and those packages
// below it that were a part of it. A function may be a method. A name with a dot is a
// method or field of a certain type; with nothing before the dot, it is not a method.
const oldNames = `
file engine concede depart leave follow catchup held first line listen gate mention refuse attempt deliver work served stream dispute attend
package pkg/reconcile/... disputes posting logging
package pkg/kopf/... object diff patch cause selector memo handler registry index storage settings hierarchy cli
file pkg/operator/... hushed tenure ending surroundings parts peers admissions admitting reviews
file pkg/login vault letter judge choose
file pkg/reconcile/internal/kube alarm repeat
file pkg/webhook/... tell print pair rivals
file pkg/health/... guard verdicts
file pkg/peering alarm parts
file pkg/cli/... harmless
file pkg/storage/... broken

type engine memory recollection remembered occurrence lines territory servings intent About activity
type pkg/reconcile/execution Contribution Trial Series
type pkg/reconcile/daemons visit tally
type pkg/model/handler Occasion Subject
type pkg/webhook About
type pkg/peering sight place
type pkg/operator/... catalogue
type pkg/login letter
field engine companions

field engine floor doubt stirred hurry said told inherited unsent tolerance foreign sweep awaits released cycle.wanted cycle.held
field pkg/reconcile settled
field pkg/reconcile/internal/write settled
function engine stuck frees lastHold mustBeHeld pass.hold
function engine leave pass.release part dismiss retire depart vacate vacated
function engine enlist attend company renew outlive untold respite pass.pause postpone adopt split probe blame conclude tolerate blind claim
function pkg/events/... insist
function pkg/peering bury succeed
function pkg/operator/... murmur alien stand lead assist
function pkg/reconcile/daemons hush

setting pkg/settings Replicas.Elected Execution.ExitTimeout Execution.Checkpoint Queueing.DisputeDelays Health.Stall Health.ProbeAge Admission.OwnNamespace Metrics.Operator
reason pkg/reconcile/... Postponed Disputed Refused Success Failure Retry Finished

function pkg/kopf Old New Match Matching ResourceOf IndexFor
value pkg/kopf Added Changed Removed
function pkg/kopf AllAtOnce AsSoonAsPossible OneByOne Randomized Shuffled
function pkg/kopf K3dServer MinikubeServer DockerDesktopServer AutoServer AutoTunnel Tunneled
type pkg/kopf NgrokTunnel
type pkg/model/handler GeneralOption AnyOption
function pkg/model/handler .Old .New .Match
function pkg/model/selector Matching
function pkg/storage Recorded
type pkg/storage search
function pkg/model/patch JSONPatch
`

// keptNames lists the old names that stay, as in the table above. The section of
// CONTRIBUTING.md with this heading gives the reasons.
const (
	keptNames = `
file engine stream
`
	keptHeading = "## Names that stay"
)

// elsewhere lists the packages below the engine that were never a part of it.
var elsewhere = []string{"execution", "daemons", "indexing", "discovery", "internal/kube"}

// oldName is one entry of the list.
type oldName struct{ kind, folder, name string }

func parseNames(text string) []oldName {
	var all []oldName
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		for _, name := range fields[min(2, len(fields)):] {
			all = append(all, oldName{fields[0], fields[1], name})
		}
	}
	return all
}

// in reports whether the entry applies to the folder.
func (n oldName) in(folder string) bool {
	if n.folder != "engine" {
		return matches(folder, n.folder)
	}
	return within(folder, "pkg/reconcile") && !slices.ContainsFunc(elsewhere, func(one string) bool {
		return within(folder, "pkg/reconcile/"+one)
	})
}

func TestOldNamesAreGone(t *testing.T) {
	root := root(t)
	kept := parseNames(keptNames)
	guide := documents(t)["CONTRIBUTING.md"]
	_, reasons, _ := strings.Cut(guide, keptHeading)
	for _, one := range kept {
		if !strings.Contains(reasons, "`"+one.name+"`") {
			t.Errorf("CONTRIBUTING.md must say below %q why the %s %s in %s stays", keptHeading, one.kind, one.name, one.folder)
		}
	}
	all := parseNames(oldNames)
	for _, declared := range declarations(t, root) {
		for _, old := range all {
			if old.kind == declared.kind && old.in(declared.folder) && declared.is(old.name) && !slices.Contains(kept, old) {
				t.Errorf("%s: the %s %s has an old name", declared.where, old.kind, old.name)
			}
		}
	}
}

// declaration is something with a name.
type declaration struct {
	kind, folder, name string
	// owner is the type of a field or a method.
	owner string
	where string
}

func (d declaration) is(name string) bool {
	return name == d.name || name == d.owner+"."+d.name
}

// declarations returns everything with a name under pkg. Of tests, it returns only the
// files.
func declarations(t *testing.T, root string) []declaration {
	t.Helper()
	var all []declaration
	for _, pkg := range list(t) {
		folder := strings.TrimPrefix(pkg.ImportPath, module)
		if !strings.HasPrefix(folder, "pkg/") || strings.Contains(folder, "/testdata/") {
			continue
		}
		all = append(all, declaration{kind: "package", folder: folder, name: path.Base(folder), where: folder})
		for _, file := range pkg.files() {
			name := strings.TrimSuffix(strings.TrimSuffix(filepath.Base(file), ".go"), "_test")
			below, _ := filepath.Rel(root, file)
			all = append(all, declaration{kind: "file", folder: folder, name: name, where: below})
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			fileset := token.NewFileSet()
			parsed, err := parser.ParseFile(fileset, file, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			names := &collector{folder: folder, where: func(at token.Pos) string {
				return fmt.Sprintf("%s:%d", below, fileset.Position(at).Line)
			}}
			ast.Inspect(parsed, names.visit)
			all = append(all, names.found...)
		}
	}
	return all
}

// collector gathers the declarations of a file.
type collector struct {
	folder string
	where  func(token.Pos) string
	found  []declaration
}

func (c *collector) add(kind, owner string, name *ast.Ident) {
	c.found = append(c.found, declaration{kind: kind, folder: c.folder, owner: owner, name: name.Name, where: c.where(name.Pos())})
}

func (c *collector) visit(node ast.Node) bool {
	switch node := node.(type) {
	case *ast.FuncDecl:
		c.add("function", ownerOf(node), node.Name)
	case *ast.TypeSpec:
		c.add("type", "", node.Name)
		if structure, ok := node.Type.(*ast.StructType); ok {
			c.fields(node.Name.Name, structure)
		}
	case *ast.ValueSpec:
		for _, name := range node.Names {
			c.add("value", "", name)
		}
	case *ast.BasicLit:
		if text, err := strconv.Unquote(node.Value); err == nil && node.Kind == token.STRING {
			c.add("reason", "", &ast.Ident{NamePos: node.Pos(), Name: text})
		}
	}
	return true
}

func (c *collector) fields(owner string, of *ast.StructType) {
	for _, field := range of.Fields.List {
		for _, name := range field.Names {
			c.add("field", owner, name)
			c.add("setting", owner, name)
		}
	}
}

// ownerOf returns the name of a method's receiver; it is empty for a function.
func ownerOf(declared *ast.FuncDecl) string {
	if declared.Recv == nil {
		return ""
	}
	of := declared.Recv.List[0].Type
	if pointer, ok := of.(*ast.StarExpr); ok {
		of = pointer.X
	}
	if generic, ok := of.(*ast.IndexExpr); ok {
		of = generic.X
	}
	return fmt.Sprint(of)
}

// Guides and messages mention settings, too.
func TestOldSettingsAreNotQuoted(t *testing.T) {
	var old []string
	for _, one := range parseNames(oldNames) {
		if one.kind == "setting" {
			old = append(old, regexp.QuoteMeta(one.name))
		}
	}
	quoted := regexp.MustCompile(`\b(` + strings.Join(old, "|") + `)\b`)
	texts := documents(t)
	for _, pkg := range list(t) {
		for _, file := range pkg.files() {
			content, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if path.Base(filepath.ToSlash(file)) != "oldnames_test.go" {
				texts[file] = string(content)
			}
		}
	}
	for name, text := range texts {
		for _, found := range quoted.FindAllString(text, -1) {
			t.Errorf("%s quotes the old setting %s", name, found)
		}
	}
}
