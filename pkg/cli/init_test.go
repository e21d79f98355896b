package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestInit(t *testing.T) {
	clone, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	got := run(t, newTool(), "init", "my/shops", "--module", "github.com/me/shops", "--group", "shops.example.com", "--kind", "Shop", "--typed", "--replace", clone)
	if got.code != ExitOK || got.log != "" || !strings.HasPrefix(got.out, "The operator shops is in my/shops:\n  .dockerignore\n") || !strings.HasSuffix(got.out, "\nNext:\n  cd my/shops\n  make test\n  make run\n") {
		t.Errorf("got %+v", got)
	}
	for path, want := range map[string]string{
		"go.mod":                   "module github.com/me/shops\n",
		"config/crd/shops.yaml":    "  name: shops.shops.example.com\n",
		"config/samples/shop.yaml": "apiVersion: shops.example.com/v1\nkind: Shop\n",
		"api/v1/types.go":          "type Shop struct {\n",
	} {
		text, err := os.ReadFile(filepath.Join("my", "shops", path))
		if err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s: got %v\n%s", path, err, text)
		}
	}
	again := run(t, newTool(), "init", "my/shops", "--replace", clone)
	if again.code != ExitError || again.log != "kopf: the folder my/shops is not empty, and nothing in it is overwritten: name a new folder\n" {
		t.Errorf("got %+v", again)
	}
}

// The name of the current folder is that of the operator, too.
func TestInitInTheCurrentFolder(t *testing.T) {
	clone, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "greeter")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	if got := run(t, newTool(), "init", ".", "--replace", clone); got.code != ExitOK || !strings.HasPrefix(got.out, "The operator greeter is in .:\n") {
		t.Errorf("got %+v", got)
	}
	if text, err := os.ReadFile("go.mod"); err != nil || !strings.HasPrefix(string(text), "module example.com/greeter\n") {
		t.Errorf("got %v\n%s", err, text)
	}
}

func TestInitInAnotherLanguage(t *testing.T) {
	t.Chdir(t.TempDir())
	if got := run(t, newTool(), "init", "greeter", "--language", "python"); got.code != ExitOK || !strings.Contains(got.out, "\n  handlers.py\n") {
		t.Errorf("got %+v", got)
	}
	for _, arguments := range [][]string{{"--typed"}, {"--module", "example.com/greeter"}, {"--replace", "."}} {
		got := run(t, newTool(), append([]string{"init", "other", "--language", "node"}, arguments...)...)
		if got.code != ExitUsage || !strings.Contains(got.log, "--typed, --module, and --replace are for projects in Go") {
			t.Errorf("%q: got %+v", arguments, got)
		}
	}
}
