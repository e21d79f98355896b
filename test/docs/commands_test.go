package docs

import (
	"fmt"
	"go/token"
	"go/types"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The words that can follow the first word of a command; nil allows anything. The flags of
// kopf and of operators are checked in pkg/cli, by the real command line.
var programs = map[string][]string{
	"go":   {"build", "doc", "get", "install", "list", "mod", "run", "test", "tool", "vet"},
	"kopf": {"cluster", "completion", "conformance", "explain", "freeze", "init", "kubebuilder", "manifests", "page", "peers", "plan", "rbac", "release", "rerun", "resume", "retry", "run", "serve", "shards", "skip", "suspend", "unsuspend", "version"},
	"kubectl": {
		"annotate", "api-resources", "apply", "auth", "cluster-info", "config", "create", "delete", "describe", "edit",
		"exec", "explain", "get", "kopf", "krew", "kustomize", "label", "logs", "patch", "port-forward", "replace", "rollout", "scale", "version", "wait",
	},
	"./my-operator": {"completion", "explain", "manifests", "page", "peers", "plan", "rbac", "release", "rerun", "retry", "shards", "skip", "suspend", "unsuspend", "version"},
	"docker":        {"build", "buildx", "push"},
	"git":           {"clone", "diff"},
	"k3d":           {"cluster", "image"},
	"kind":          {"create", "delete", "load"},
	"kubebuilder":   {"create", "edit", "init"},
	"helm":          {"install", "lint", "template", "uninstall", "upgrade"},
	"kustomize":     {"build", "edit"},
	"make":          nil, // the targets of the Makefile, and of that of kopf init
	"cd":            nil,
	"curl":          nil,
	"export":        nil,
	"grep":          nil,
	"jq":            nil,
	"ln":            nil,
	"openssl":       nil,
	"skopeo":        {"copy"},
}

// span matches a command within the text.
var span = regexp.MustCompile("`((?:go|kopf|kubectl|make) [^`]+)`")

func TestCommandsExist(t *testing.T) {
	check := newCommandChecker(t)
	all, commands := pages(t), 0
	for _, page := range slices.Sorted(maps.Keys(all)) {
		for _, one := range blocksOf(page, all[page]) {
			for _, words := range commandsIn(commandText(one)) {
				commands++
				if err := check.command(words); err != nil {
					t.Errorf("%s:%d: %s: %v", page, one.line, strings.Join(words, " "), err)
				}
			}
		}
		for _, found := range span.FindAllStringSubmatch(fenced.ReplaceAllString(all[page], ""), -1) {
			for _, words := range commandsIn(strings.ReplaceAll(found[1], "\n", " ")) {
				commands++
				if err := check.command(words); err != nil {
					t.Errorf("%s: %s: %v", page, found[1], err)
				}
			}
		}
	}
	if commands < 100 {
		t.Errorf("found only %d commands", commands)
	}
}

// commandText returns the part of a block that is commands.
func commandText(one block) string {
	switch one.language {
	case "":
		return one.text
	case "console":
		var typed strings.Builder
		for line := range strings.Lines(one.text) {
			if command, ok := strings.CutPrefix(strings.TrimLeft(line, " "), "$ "); ok {
				typed.WriteString(command)
			}
		}
		return typed.String()
	default:
		return ""
	}
}

// commandChecker knows what commands can name.
type commandChecker struct {
	root               string
	targets, variables map[string]bool // of the Makefiles
	importer           types.Importer
}

var (
	target   = regexp.MustCompile(`(?m)^([a-z0-9-]+):`)
	variable = regexp.MustCompile(`(?m)^([A-Z]+) *\?=`)
)

func newCommandChecker(t *testing.T) *commandChecker {
	t.Helper()
	var makefiles []byte
	for _, name := range []string{"Makefile", "pkg/cli/scaffold/templates/all/Makefile.tmpl"} {
		text, err := os.ReadFile(filepath.Join(root(t), name))
		if err != nil {
			t.Fatal(err)
		}
		makefiles = append(makefiles, text...)
	}
	names := func(pattern *regexp.Regexp) map[string]bool {
		found := map[string]bool{}
		for _, match := range pattern.FindAllStringSubmatch(string(makefiles), -1) {
			found[match[1]] = true
		}
		return found
	}
	return &commandChecker{root: root(t), targets: names(target), variables: names(variable), importer: newCompiler(t).importer}
}

// command returns what is wrong with a command.
func (c *commandChecker) command(words []string) error {
	following, known := programs[words[0]]
	switch {
	case !known:
		return fmt.Errorf("unknown program: add it to test/docs/commands_test.go, or mark the block as text")
	case len(words) > 1 && strings.Contains(words[1], "…"), len(words) == 1:
		return nil
	case following != nil && !strings.HasPrefix(words[1], "-") && !slices.Contains(following, words[1]):
		return fmt.Errorf("%s has no command %s", words[0], words[1])
	}
	for _, word := range words[1:] {
		if err := c.file(word); err != nil {
			return err
		}
	}
	switch words[0] {
	case "make":
		return c.make(words[1:])
	case "go":
		return c.golang(words[1], words[2:])
	}
	return nil
}

// file returns an error for a path into the repository that does not exist. Paths into
// the user's own project do not begin with its folders.
func (c *commandChecker) file(word string) error {
	name := strings.TrimSuffix(strings.TrimPrefix(word, "./"), "/...")
	for _, folder := range []string{"cmd", "config", "examples", "hack", "pkg", "test"} {
		if name == folder || strings.HasPrefix(name, folder+"/") {
			_, err := os.Stat(filepath.Join(c.root, name))
			return err
		}
	}
	return nil
}

func (c *commandChecker) make(words []string) error {
	for _, word := range words {
		name, value, assigned := strings.Cut(word, "=")
		example := filepath.Join(c.root, "examples", value)
		switch {
		case !assigned && !c.targets[word]:
			return fmt.Errorf("the Makefile has no target %s", word)
		case assigned && !c.variables[name]:
			return fmt.Errorf("the Makefile has no variable %s", name)
		case name == "EXAMPLE" && !strings.ContainsAny(value, "….") && !exists(example):
			return fmt.Errorf("there is no example %s", value)
		}
	}
	return nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// golang checks the packages of this module that a go command names, and the symbols
// that `go doc` shows.
func (c *commandChecker) golang(command string, words []string) error {
	for i, word := range words {
		name, ours := strings.CutPrefix(word, strings.TrimSuffix(module, "/"))
		if !ours {
			continue
		}
		name, _, _ = strings.Cut(name, "@")
		folder, symbol, _ := strings.Cut(path.Base("/"+name), ".")
		folder = path.Join(path.Dir("/"+name), folder)
		if err := c.file("." + folder); err != nil || command != "doc" {
			return err
		}
		if symbol == "" && i+1 < len(words) {
			symbol = words[i+1]
		}
		return c.symbol(strings.TrimPrefix(folder, "/"), symbol)
	}
	return nil
}

// symbol returns an error if a package has no such type or function, or a type no such
// method.
func (c *commandChecker) symbol(folder, symbol string) error {
	if symbol == "" {
		return nil
	}
	pkg, err := c.importer.Import(module + folder)
	if err != nil {
		return err
	}
	name, member, hasMember := strings.Cut(symbol, ".")
	declared := pkg.Scope().Lookup(name)
	if declared == nil || !token.IsExported(name) {
		return fmt.Errorf("%s has no %s", folder, name)
	}
	if found, _, _ := types.LookupFieldOrMethod(declared.Type(), true, pkg, member); hasMember && found == nil {
		return fmt.Errorf("%s has no %s", folder, symbol)
	}
	return nil
}

func TestCommandChecker(t *testing.T) {
	check := newCommandChecker(t)
	tests := map[string]string{
		"make run EXAMPLE=01-minimal":                            "",
		"make jump":                                              "no target jump",
		"make run SAMPLE=1":                                      "no variable SAMPLE",
		"make run EXAMPLE=nothing":                               "no example nothing",
		"make run EXAMPLE=…":                                     "",
		"kubectl get pods":                                       "",
		"kubectl -n a get pods":                                  "",
		"kubectl obtain pods":                                    "no command obtain",
		"kubectl apply -k config/default":                        "",
		"kubectl apply -k config/nothing":                        "no such file",
		"go run ./examples/01-minimal":                           "",
		"go run ./examples/nothing":                              "no such file",
		"go run . --verbose":                                     "",
		"go walk .":                                              "no command walk",
		"go install github.com/kopf-go/kopf/cmd/kopf@latest":     "",
		"go install github.com/kopf-go/kopf/cmd/nothing@latest":  "no such file",
		"go get github.com/kopf-go/kopf@latest":                  "",
		"go doc github.com/kopf-go/kopf/pkg/kopf OnCreate":       "",
		"go doc github.com/kopf-go/kopf/pkg/kopf.Change.Patch":   "",
		"go doc github.com/kopf-go/kopf/pkg/kopf.Change.Nothing": "has no Change.Nothing",
		"go doc github.com/kopf-go/kopf/pkg/kopf Nothing":        "has no Nothing",
		"kopf stop":        "no command stop",
		"apt install kopf": "unknown program",
	}
	for command, want := range tests {
		t.Run(command, func(t *testing.T) {
			err := check.command(strings.Fields(command))
			if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want %q", err, want)
			}
		})
	}
}
