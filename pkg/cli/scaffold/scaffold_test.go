package scaffold_test

import (
	"bytes"
	"go/format"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kopf-go/kopf/pkg/cli/scaffold"
)

// greeter returns the project of the tests.
func greeter(change func(*scaffold.Project)) scaffold.Project {
	project := scaffold.Project{Name: "greeter", Module: "example.com/greeter", Group: "example.com", Kind: "Greeting", Version: "v0.1.0"}
	change(&project)
	return project
}

func untyped(*scaffold.Project)       {}
func typed(project *scaffold.Project) { project.Typed = true }

// write writes a project to a new folder.
func write(t *testing.T, project scaffold.Project) (string, []string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), project.Name)
	paths, err := project.Write(dir)
	if err != nil {
		t.Fatal(err)
	}
	return dir, paths
}

func TestFilesOfAProject(t *testing.T) {
	common := []string{
		".dockerignore", ".github/workflows/test.yaml", ".gitignore", "Dockerfile", "Makefile", "README.md",
		"config/crd/greetings.yaml", "config/samples/greeting.yaml", "go.mod", "handlers.go", "handlers_test.go", "main.go",
	}
	served := []string{
		".dockerignore", ".github/workflows/test.yaml", ".gitignore", "Dockerfile", "Makefile", "README.md",
		"config/crd/greetings.yaml", "config/samples/greeting.yaml", "operator.yaml",
	}
	in := func(language string) scaffold.Project {
		return greeter(func(project *scaffold.Project) { project.Language = language })
	}
	types := []string{"api/v1/groupversion_info.go", "api/v1/types.go", "api/v1/zz_generated.deepcopy.go"}
	for name, test := range map[string]struct {
		project scaffold.Project
		want    []string
	}{
		"untyped": {greeter(untyped), common},
		"typed":   {greeter(typed), slices.Concat(common, types)},
		"python":  {in("python"), slices.Concat(served, []string{"handlers.py", "kopf.py", "test_handlers.py"})},
		"node":    {in("node"), slices.Concat(served, []string{"worker.js", "worker.test.js"})},
		"shell":   {in("shell"), slices.Concat(served, []string{"greet.sh", "remove.sh", "test.sh"})},
	} {
		t.Run(name, func(t *testing.T) {
			dir, got := write(t, test.project)
			slices.Sort(test.want)
			if !slices.Equal(got, test.want) {
				t.Errorf("got %q", got)
			}
			for _, path := range got {
				text, err := os.ReadFile(filepath.Join(dir, path))
				if err != nil {
					t.Fatal(err)
				}
				if !bytes.HasSuffix(text, []byte("\n")) || bytes.Contains(text, []byte("<no value>")) || bytes.Contains(text, []byte("\n\n\n")) && filepath.Ext(path) != ".py" {
					t.Errorf("%s:\n%s", path, text)
				}
			}
		})
	}
}

// The lengths of the names decide how gofmt aligns and sorts.
func TestSourcesAreFormatted(t *testing.T) {
	for _, kind := range []string{"A", "Greeting", "Type", "DistributedStorageCluster"} {
		dir, paths := write(t, greeter(func(project *scaffold.Project) { project.Kind, project.Typed = kind, true }))
		for _, path := range paths {
			if filepath.Ext(path) != ".go" {
				continue
			}
			text, err := os.ReadFile(filepath.Join(dir, path))
			if err != nil {
				t.Fatal(err)
			}
			formatted, err := format.Source(text)
			if err != nil || !bytes.Equal(formatted, text) {
				t.Errorf("%s: %v\n%s", path, err, text)
			}
		}
	}
}

func TestWhereTheLibraryIs(t *testing.T) {
	for want, change := range map[string]func(*scaffold.Project){
		"\nrequire github.com/kopf-go/kopf v0.1.0\n":          untyped,
		"\nreplace github.com/kopf-go/kopf => /clones/kopf\n": func(project *scaffold.Project) { project.Replace = "/clones/kopf" },
	} {
		dir, _ := write(t, greeter(change))
		text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err != nil || !strings.Contains(string(text), want) {
			t.Errorf("got %v\n%s", err, text)
		}
	}
}

func TestMistakesInNames(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*scaffold.Project)
		want   string
	}{
		"none":                         {untyped, ""},
		"a name in capitals":           {func(p *scaffold.Project) { p.Name = "Greeter" }, `the name of the folder becomes that of the operator: "Greeter" cannot`},
		"a name that is a digit":       {func(p *scaffold.Project) { p.Name = "1" }, `"1" cannot`},
		"a long name":                  {func(p *scaffold.Project) { p.Name = strings.Repeat("a", 60) }, "characters"},
		"a module with blanks":         {func(p *scaffold.Project) { p.Module = "my operator" }, `the module "my operator" is not a path of a Go module, such as example.com/greeter`},
		"a module as a URL":            {func(p *scaffold.Project) { p.Module = "https://example.com/greeter" }, "is not a path of a Go module"},
		"a module that begins with /":  {func(p *scaffold.Project) { p.Module = "/greeter" }, "is not a path of a Go module"},
		"a module of one word":         {func(p *scaffold.Project) { p.Module = "greeter" }, ""},
		"a module with a version":      {func(p *scaffold.Project) { p.Module = "github.com/me/greeter/v2" }, ""},
		"a group in capitals":          {func(p *scaffold.Project) { p.Group = "Example.com" }, `the group "Example.com" is not a domain, such as example.com`},
		"a group with a version":       {func(p *scaffold.Project) { p.Group = "example.com/v1" }, "is not a domain"},
		"a group without a dot":        {func(p *scaffold.Project) { p.Group = "shops" }, `the group "shops" has no dot: use a domain of yours, such as shops.example.com`},
		"a group of Kubernetes":        {func(p *scaffold.Project) { p.Group = "shops.k8s.io" }, `the group "shops.k8s.io" belongs to Kubernetes`},
		"the group of Kubernetes":      {func(p *scaffold.Project) { p.Group = "kubernetes.io" }, "belongs to Kubernetes"},
		"a kind in small letters":      {func(p *scaffold.Project) { p.Kind = "greeting" }, `the kind "greeting" is not a word such as Greeting: it begins with a capital letter`},
		"a kind with a dash":           {func(p *scaffold.Project) { p.Kind = "My-Greeting" }, "has only letters and digits"},
		"a kind that looks like lists": {func(p *scaffold.Project) { p.Kind = "GreetingList" }, `the kind "GreetingList" ends in List`},
		"a language that is unknown":   {func(p *scaffold.Project) { p.Language = "cobol" }, `there is no project in the language "cobol": use go, or one of python, node, shell`},
		"a long kind":                  {func(p *scaffold.Project) { p.Kind = "A" + strings.Repeat("a", 63) }, "is not a name of a resource"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "greeter")
			_, err := greeter(test.change).Write(dir)
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v", err)
			}
			if _, err := os.Stat(dir); (err == nil) != (test.want == "") {
				t.Errorf("the folder: %v", err)
			}
		})
	}
}

func TestPlurals(t *testing.T) {
	for kind, want := range map[string]string{"Greeting": "greetings", "Policy": "policies", "Gateway": "gateways", "Mesh": "meshes", "Bus": "buses"} {
		if got := greeter(func(project *scaffold.Project) { project.Kind = kind }).Plural(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestNothingIsOverwritten(t *testing.T) {
	dir := t.TempDir() // is empty
	if _, err := greeter(untyped).Write(dir); err != nil {
		t.Fatal(err)
	}
	own := filepath.Join(dir, "main.go")
	if err := os.WriteFile(own, []byte("package mine\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := greeter(typed).Write(dir)
	if err == nil || err.Error() != "the folder "+dir+" is not empty, and nothing in it is overwritten: name a new folder" {
		t.Errorf("got %v", err)
	}
	if text, err := os.ReadFile(own); err != nil || string(text) != "package mine\n" {
		t.Errorf("got %q, %v", text, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "api")); err == nil {
		t.Error("some files were written")
	}
	if _, err := greeter(untyped).Write(own); err == nil || !strings.HasPrefix(err.Error(), "the project cannot be written: ") {
		t.Errorf("a file: got %v", err)
	}
}
