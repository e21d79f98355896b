package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// checkout is a module with one of everything that is counted.
var checkout = map[string]string{
	"go.mod":       "module example.com/m\n\ngo 1.26\n",
	"api/kopf.txt": "package kopf\n\nfunc Run()\n",
	"cmd/m/m.go":   "package main\n\nimport _ \"example.com/m/pkg/kopf\"\n\nfunc main() {}\n",
	"pkg/kopf/kopf.go": `package kopf

import "os"

// Option is an option.
type Option struct{}

// Apply applies.
func (Option) Apply() { twice(); twice(); never(nil) }

// Run runs.
func Run() (err error) {
	if once(); err != nil {
		return err
	}
	if err = os.Chdir("/"); err != nil {
		return err
	}
	if err := os.Chdir("/"); err != nil {
		return err
	}
	a, b := 1, 2
	_, _ = a, b
	return nil
}

func once() {}

func twice() {}

func unused() {
	never := func() {}
	never()
}

func never(
	a *int,
) {
	a = nil
	a = nil
	a = nil
	a = nil
	a = nil
	a = nil
	a = nil
	a = nil
	a = nil
	_ = a
}
`,
	"pkg/kopf/kopf_test.go":    "package kopf\n",
	"pkg/kopf/testdata/x/x.go": "package x\n",
	"hack/tool/tool.go":        "package tool\n",
}

func TestMeasure(t *testing.T) {
	dir := t.TempDir()
	for name, content := range checkout {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	found, err := measure(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct{ got, want string }{
		"production":      {found.sizes.production.String(), "54, 2, 2"},
		"tests":           {found.sizes.tests.String(), "2, 2, 2"},
		"others":          {found.sizes.others.String(), "1, 1, 1"},
		"functions":       {fmt.Sprint(found.functions), "{4 2 1 4 14 pkg/kopf/kopf.go: Run}"},
		"statements":      {fmt.Sprint(found.statements), "{2 2}"},
		"names and lines": {fmt.Sprint(found.api), "{2 3}"},
	} {
		if test.got != test.want {
			t.Errorf("%s: got %s, want %s", name, test.got, test.want)
		}
	}
}

func TestTableShowsTheHousesSideBySide(t *testing.T) {
	var out strings.Builder
	err := write(&out, []column{
		{title: "Before", rows: []row{{"Files", "2"}, {"Lines", "20"}}},
		{title: "After", rows: []row{{"Files", "1"}, {"Lines", "10"}}},
	})
	want := "| | Before | After |\n|---|---|---|\n| Files | 2 | 1 |\n| Lines | 20 | 10 |\n"
	if err != nil || out.String() != want {
		t.Errorf("got %v and\n%s", err, out.String())
	}
}
