package kubebuilder_test

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kopf-go/kopf/pkg/cli/kubebuilder"
)

// answer is what kubebuilder reads.
type answer struct {
	Universe  map[string]string
	Error     bool
	ErrorMsgs []string
	Metadata  struct{ Description, Examples string }
	Flags     []struct{ Name, Type string }
}

// ask asks the plugin about files.
func ask(t *testing.T, command string, files map[string]string, arguments ...string) answer {
	t.Helper()
	request, err := json.Marshal(map[string]any{
		"apiVersion": "v1alpha1", "command": command, "args": arguments, "universe": files,
		"config": map[string]any{"domain": "example.com", "repo": "example.com/shop", "projectName": "shop", "multigroup": strings.Contains(command, "multi")},
	})
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := kubebuilder.Answer(strings.NewReader(string(request)), &out); err != nil {
		t.Fatal(err)
	}
	var answered answer
	if err := json.Unmarshal([]byte(out.String()), &answered); err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	return answered
}

// fresh are the files of a new project, as far as the plugin reads them.
func fresh() map[string]string {
	return map[string]string{
		"go.mod":      "module example.com/shop\n\ngo 1.26.0\n",
		"cmd/main.go": "package main\n\nimport (\n\t\"os\"\n\t// +kubebuilder:scaffold:imports\n)\n\nfunc main() {\n\t// +kubebuilder:scaffold:builder\n}\n",
	}
}

// with returns files with the changes of an answer.
func with(files map[string]string, of answer) map[string]string {
	all := maps.Clone(files)
	maps.Copy(all, of.Universe)
	return all
}

func TestTheManagerRunsHandlers(t *testing.T) {
	for _, command := range []string{"init", "edit"} {
		files := fresh()
		answered := ask(t, command, files, "--domain", "example.com", "--kopf-replace", "/library")
		if changed := slices.Sorted(maps.Keys(answered.Universe)); !slices.Equal(changed, []string{"cmd/main.go", "go.mod", "internal/handlers/handlers.go"}) {
			t.Fatalf("%s changes %q: %q", command, changed, answered.ErrorMsgs)
		}
		for file, want := range map[string]string{
			"cmd/main.go":                   "\tsettings := kopf.Settings{Name: \"shop\"}\n",
			"go.mod":                        "\nreplace github.com/kopf-go/kopf => /library\n",
			"internal/handlers/handlers.go": "func New() *kopf.Registry {",
		} {
			if !strings.Contains(answered.Universe[file], want) {
				t.Errorf("%s lacks %q:\n%s", file, want, answered.Universe[file])
			}
		}
		if again := ask(t, "edit", with(files, answered), "--kopf-replace", "/library"); len(again.Universe) > 0 || again.Error {
			t.Errorf("a second time changes %v", again)
		}
	}
}

func TestAKindHasHandlers(t *testing.T) {
	files := fresh()
	first := ask(t, "create api", files, "--group", "shop", "--version", "v1", "--kind", "Type", "--namespaced=false", "--controller=false")
	files = with(files, first)
	for file, want := range map[string]string{
		"internal/handlers/handlers.go":           "\taddType(registry)\n\t// +kopf:scaffold:handlers\n",
		"internal/handlers/type_handlers.go":      "kopf.For[*shopv1.Type](registry)",
		"internal/handlers/type_handlers_test.go": `metav1.ObjectMeta{Name: "example"}`,
	} {
		if !strings.Contains(files[file], want) {
			t.Errorf("%s lacks %q:\n%s", file, want, files[file])
		}
	}
	for _, want := range []string{`shopv1 "example.com/shop/api/v1"`, "groups=shop.example.com,resources=types,verbs=get;list;watch;patch"} {
		if !strings.Contains(files["internal/handlers/type_handlers.go"], want) {
			t.Errorf("the handlers lack %q:\n%s", want, files["internal/handlers/type_handlers.go"])
		}
	}
	if again := ask(t, "create api", files, "--group", "shop", "--version", "v2", "--kind", "Type"); len(again.Universe) > 0 || again.Error {
		t.Errorf("a second version changes %v", again)
	}
	if other := ask(t, "create api", files, "--group", "shop", "--version", "v1", "--kind", "Octopus", "--plural", "octopodes"); !strings.Contains(other.Universe["internal/handlers/octopus_handlers.go"], "resources=octopodes,") {
		t.Errorf("the plural is not that of the flag: %v", other)
	}
}

func TestMistakesAreAnswered(t *testing.T) {
	lacking := fresh()
	lacking["cmd/main.go"] = "package main\n"
	for name, test := range map[string]struct {
		answered answer
		want     string
	}{
		"no manager": {ask(t, "init", nil), "there is no cmd/main.go: use this plugin together with go/v4"},
		"no marker":  {ask(t, "init", lacking), "cmd/main.go has no line"},
		"no kind":    {ask(t, "create api", fresh(), "--group", "shop"), "no kind is given"},
	} {
		if a := test.answered; !a.Error || len(a.Universe) > 0 || !strings.Contains(strings.Join(a.ErrorMsgs, "\n"), test.want) {
			t.Errorf("%s: got %+v", name, a)
		}
	}
	var out strings.Builder
	if err := kubebuilder.Answer(strings.NewReader("hello"), &out); err == nil || !strings.Contains(err.Error(), "no request of kubebuilder") {
		t.Errorf("got %v", err)
	}
	if err := kubebuilder.Answer(strings.NewReader(`{"apiVersion": "v9", "command": "init"}`), &out); err != nil || !strings.Contains(out.String(), `speaks the version \"v9\"`) {
		t.Errorf("got %v, %s", err, &out)
	}
}

func TestKubebuilderAsksForHelp(t *testing.T) {
	if a := ask(t, "flags", nil, "--init"); len(a.Flags) != 1 || a.Flags[0].Name != "kopf-replace" || a.Flags[0].Type != "string" {
		t.Errorf("got %+v", a)
	}
	if a := ask(t, "metadata", nil, "--api"); a.Metadata.Description == "" || a.Metadata.Examples == "" {
		t.Errorf("got %+v", a)
	}
	if a := ask(t, "create webhook", fresh(), "--kind", "Order"); len(a.Universe) > 0 || a.Error {
		t.Errorf("got %+v", a)
	}
}

func TestInstall(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", dir)
	t.Setenv("EXTERNAL_PLUGINS_PATH", "")
	path, err := kubebuilder.Install("/bin/kopf kubebuilder --answer")
	if want := filepath.Join(dir, "kubebuilder", "plugins", "kopf.dev", "v1", "kopf.dev"); err != nil || path != want {
		t.Fatalf("got %s, %v, want %s", path, err, want)
	}
	text, err := os.ReadFile(path)
	if err != nil || string(text) != "#!/bin/sh\nexec /bin/kopf kubebuilder --answer\n" {
		t.Errorf("got %q, %v", text, err)
	}
	t.Setenv("EXTERNAL_PLUGINS_PATH", filepath.Join(dir, "own"))
	if path, err := kubebuilder.Install("true"); err != nil || !strings.HasPrefix(path, filepath.Join(dir, "own")) {
		t.Errorf("got %s, %v", path, err)
	}
}
