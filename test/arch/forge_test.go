package arch

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/kopf-go/kopf/hack/envtest/assets"
)

// makeTarget matches a call of make in a workflow or a form; the group is the target.
var makeTarget = regexp.MustCompile(`\bmake ([a-z0-9-]+)`)

// The linter of workflows knows their format, but not what they call.
func TestWorkflowsCallTargetsThatExist(t *testing.T) {
	makefile := readFromRoot(t, "Makefile")
	for _, path := range filesInRoot(t, ".github/*.yml", ".github/*.md", ".github/*/*.yml") {
		for _, call := range makeTarget.FindAllStringSubmatch(readFromRoot(t, path), -1) {
			if !strings.Contains(makefile, "\n"+call[1]+":") {
				t.Errorf("%s: make %s does not exist", path, call[1])
			}
		}
	}
}

func TestDependabotUpdatesAllModules(t *testing.T) {
	var config struct {
		Updates []struct {
			Directories []string `json:"directories"`
		} `json:"updates"`
	}
	if err := yaml.Unmarshal([]byte(readFromRoot(t, ".github/dependabot.yml")), &config); err != nil {
		t.Fatal(err)
	}
	named := map[string]bool{}
	for _, update := range config.Updates {
		for _, directory := range update.Directories {
			named[strings.TrimPrefix(directory, "/")] = true
		}
	}
	for _, path := range filesInRoot(t, "go.mod", "*/go.mod", "*/*/go.mod", "*/*/*/go.mod", "*/*/*/*/go.mod") {
		directory := strings.TrimSuffix(strings.TrimSuffix(path, "go.mod"), "/")
		if strings.Contains(directory, "testdata") {
			continue
		}
		if !named[directory] {
			t.Errorf(".github/dependabot.yml does not name the module in /%s", directory)
		}
		delete(named, directory)
	}
	for directory := range named {
		t.Errorf(".github/dependabot.yml names /%s, which has no module", directory)
	}
}

// The command of Ginkgo and the library must understand each other.
func TestGinkgoHasOneVersion(t *testing.T) {
	version := regexp.MustCompile(`onsi/ginkgo/v2 (v\S+)`)
	want := version.FindString(readFromRoot(t, "go.mod"))
	for _, path := range []string{"hack/tools/go.mod", "examples/kubebuilder/go.mod"} {
		if got := version.FindString(readFromRoot(t, path)); got != want || got == "" {
			t.Errorf("%s has %q, and go.mod %q", path, got, want)
		}
	}
}

func TestReleaseNotes(t *testing.T) {
	file := filepath.Join(t.TempDir(), "CHANGELOG.md")
	const changelog = "# Changelog\n\n## 1.3.0 (unreleased)\n\n- Later.\n\n## 1.2.10\n\n- Other.\n\n## 1.2.1\n\n- This.\n\n## 1.0.0\n"
	if err := os.WriteFile(file, []byte(changelog), 0o600); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct{ version, notes, problem string }{
		"a released version":   {version: "v1.2.1", notes: "\n- This.\n\n"},
		"an unreleased one":    {version: "v1.3.0", problem: "unreleased"},
		"one that is missing":  {version: "v1.2", problem: "no section"},
		"one without any text": {version: "v1.0.0"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var problem strings.Builder
			command := exec.Command(filepath.Join(root(t), "hack", "release-notes.sh"), test.version, file)
			command.Stderr = &problem
			notes, err := command.Output()
			if (err != nil) != (test.problem != "") || !strings.Contains(problem.String(), test.problem) || string(notes) != test.notes {
				t.Errorf("got %q, %q, %v", notes, problem.String(), err)
			}
		})
	}
}

// A module in a folder needs tags of its own. They require the released version of the library, and the branches do not.
func TestModulesInFoldersAreTagged(t *testing.T) {
	script := filepath.Join(root(t), "hack", "tag-modules.sh")
	tree := t.TempDir()
	run := func(command string, args ...string) (string, error) {
		c := exec.Command(command, args...)
		c.Dir = tree
		c.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_SYSTEM="+os.DevNull,
			"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com")
		output, err := c.CombinedOutput()
		return string(output), err
	}
	git := func(args ...string) string {
		t.Helper()
		output, err := run("git", args...)
		if err != nil {
			t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, output)
		}
		return output
	}
	modules := filesInRoot(t, "*/go.mod")
	for _, path := range modules {
		if err := os.MkdirAll(filepath.Join(tree, filepath.Dir(path)), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(tree, path), []byte(readFromRoot(t, path)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	git("init", "--quiet")
	git("add", ".")
	git("commit", "--quiet", "--message", "all")
	if output, err := run(script, "v1.2.3"); err == nil || !strings.Contains(output, "there is no tag v1.2.3") {
		t.Errorf("got %q, %v", output, err)
	}
	git("tag", "v1.2.3")
	before := git("rev-parse", "HEAD")
	output, err := run(script, "v1.2.3")
	if err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	var want strings.Builder
	for _, path := range modules {
		tag := filepath.Dir(path) + "/v1.2.3"
		want.WriteString(tag + "\n")
		if text := git("show", tag+":"+path); !strings.Contains(text, "\n\tgithub.com/kopf-go/kopf v1.2.3\n") {
			t.Errorf("%s requires another version:\n%s", tag, text)
		}
	}
	if output != want.String() {
		t.Errorf("got the tags %q, want %q", output, want.String())
	}
	if status := git("status", "--porcelain"); status != "" || git("rev-parse", "HEAD") != before || strings.Count(git("worktree", "list"), "\n") != 1 {
		t.Errorf("the repository has changed: %s", status)
	}
}

func root(t *testing.T) string {
	t.Helper()
	found, err := assets.Root()
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func readFromRoot(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root(t), path))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// filesInRoot returns the files that match the patterns, and fails if there is none.
func filesInRoot(t *testing.T, patterns ...string) []string {
	t.Helper()
	var files []string
	for _, pattern := range patterns {
		found, err := filepath.Glob(filepath.Join(root(t), pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range found {
			name, _ := filepath.Rel(root(t), path)
			files = append(files, filepath.ToSlash(name))
		}
	}
	if len(files) == 0 {
		t.Fatalf("no file matches %v", patterns)
	}
	return files
}
