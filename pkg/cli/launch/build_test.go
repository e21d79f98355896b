package launch

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// newPackage returns a package as go list reports it.
func newPackage(path, dir string, main bool) goPackage {
	p := goPackage{ImportPath: path, Dir: dir}
	p.Module = &struct {
		Main bool
		Dir  string
	}{Main: main}
	return p
}

func TestTheOverlayImportsThePackages(t *testing.T) {
	dir, home := t.TempDir(), t.TempDir()
	overlay, place, err := writeOverlay([]goPackage{newPackage("example.com/a", home, true), newPackage("example.com/b", "/b", true)}, dir)
	if err != nil || filepath.Dir(place) != home {
		t.Fatalf("got %s, %v", place, err)
	}
	text, err := os.ReadFile(overlay)
	if err != nil {
		t.Fatal(err)
	}
	var replaced struct{ Replace map[string]string }
	if err := json.Unmarshal(text, &replaced); err != nil || len(replaced.Replace) != 1 {
		t.Fatalf("got %s, %v", text, err)
	}
	source, err := os.ReadFile(replaced.Replace[filepath.Join(place, "main.go")])
	if err != nil || !bytes.Contains(source, []byte("\t_ \"example.com/a\"\n\t_ \"example.com/b\"\n")) {
		t.Errorf("got %s, %v", source, err)
	}
	if left, err := os.ReadDir(home); err != nil || len(left) > 0 {
		t.Errorf("got %v, %v", left, err)
	}
}

func TestOverlayDir(t *testing.T) {
	a, b := newPackage("m/a", "/a", true), newPackage("m/b", "/b", true)
	inner, innermost := newPackage("m/b/internal/c", "/c", true), newPackage("m/b/internal", "/i", true)
	foreign := newPackage("x/y", "/y", false)
	tests := map[string]struct {
		packages []goPackage
		want     string
	}{
		"one":                                      {[]goPackage{b}, "/b"},
		"the first":                                {[]goPackage{a, b}, "/a"},
		"where the internal package is visible":    {[]goPackage{a, inner}, "/c"},
		"in the parent of the internal package":    {[]goPackage{a, b, innermost}, "/b"},
		"in the user's module":                     {[]goPackage{foreign, a}, "/a"},
		"anywhere without a package of the module": {[]goPackage{foreign}, "."},
		"an internal package without a parent":     {[]goPackage{newPackage("internal/c", "/c", true)}, "/c"},
		"a name that begins with internal":         {[]goPackage{a, newPackage("m/internals/d", "/d", true)}, "/a"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := overlayDir(test.packages); got != test.want {
				t.Errorf("got %s", got)
			}
		})
	}
}

func TestProgramName(t *testing.T) {
	tests := map[string]struct {
		of    goPackage
		given string
		want  string
	}{
		"a package":                  {newPackage("example.com/a/handlers", "", true), "./x", "handlers"},
		"a file":                     {newPackage("command-line-arguments", "", true), "dir/handlers.go", "handlers"},
		"a package without a module": {goPackage{ImportPath: "a"}, "./handlers", "handlers"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := programName(test.of, test.given); got != test.want {
				t.Errorf("got %s", got)
			}
		})
	}
}

func TestInvalidPackages(t *testing.T) {
	tests := map[string]struct {
		packages []string
		want     string
	}{
		"nothing":          {[]string{"./nothing"}, "the package ./nothing cannot be found: "},
		"an empty pattern": {[]string{"./nothing..."}, "no packages found in ./nothing..."},
		"a library":        {[]string{"errors"}, "the package errors declares no handlers: it does not import " + facade},
		"a flag":           {[]string{"-race"}, "the package -race cannot be found: "},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := Build(t.Context(), test.packages, t.TempDir(), &bytes.Buffer{})
			if err == nil || !strings.HasPrefix(err.Error(), test.want) {
				t.Errorf("got %v", err)
			}
		})
	}
	t.Run("without go", func(t *testing.T) {
		t.Setenv("PATH", t.TempDir())
		_, err := Build(t.Context(), []string{"."}, t.TempDir(), &bytes.Buffer{})
		if err == nil || !strings.HasPrefix(err.Error(), "the go command, which builds the packages, is not installed") {
			t.Errorf("got %v", err)
		}
	})
}
