package launch

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// newPackage makes what the go command would say of a package.
func newPackage(path, dir string, main bool) goPackage {
	p := goPackage{ImportPath: path, Dir: dir}
	p.Module = &struct {
		Main bool
		Dir  string
	}{Main: main}
	return p
}

func TestTheProgramAroundPackages(t *testing.T) {
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

func TestHome(t *testing.T) {
	a, b := newPackage("m/a", "/a", true), newPackage("m/b", "/b", true)
	inner, innermost := newPackage("m/b/internal/c", "/c", true), newPackage("m/b/internal", "/i", true)
	foreign := newPackage("x/y", "/y", false)
	tests := map[string]struct {
		packages []goPackage
		want     string
	}{
		"one":                              {[]goPackage{b}, "/b"},
		"the first":                        {[]goPackage{a, b}, "/a"},
		"where the internal one is seen":   {[]goPackage{a, inner}, "/c"},
		"in the parent of the internal":    {[]goPackage{a, b, innermost}, "/b"},
		"in the user's own module":         {[]goPackage{foreign, a}, "/a"},
		"anywhere, if there is no such":    {[]goPackage{foreign}, "."},
		"internal of a module of its own":  {[]goPackage{newPackage("internal/c", "/c", true)}, "/c"},
		"internal only in its name's part": {[]goPackage{a, newPackage("m/internals/d", "/d", true)}, "/a"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := overlayDir(test.packages); got != test.want {
				t.Errorf("got %s", got)
			}
		})
	}
}

func TestNames(t *testing.T) {
	tests := map[string]struct {
		of    goPackage
		given string
		want  string
	}{
		"a package":              {newPackage("example.com/a/handlers", "", true), "./x", "handlers"},
		"a file":                 {newPackage("command-line-arguments", "", true), "dir/handlers.go", "handlers"},
		"a package of no module": {goPackage{ImportPath: "a"}, "./handlers", "handlers"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := programName(test.of, test.given); got != test.want {
				t.Errorf("got %s", got)
			}
		})
	}
}

func TestWhatCannotBeBuilt(t *testing.T) {
	tests := map[string]struct {
		packages []string
		want     string
	}{
		"nothing":            {[]string{"./nothing"}, "there is no package ./nothing: "},
		"an empty pattern":   {[]string{"./nothing..."}, "there is no package in ./nothing..."},
		"a library":          {[]string{"errors"}, "the package errors has no handlers: it does not import " + facade},
		"what is no package": {[]string{"-race"}, "there is no package -race: "},
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
		if err == nil || !strings.HasPrefix(err.Error(), "the go command is not installed, or not in the PATH") {
			t.Errorf("got %v", err)
		}
	})
}
