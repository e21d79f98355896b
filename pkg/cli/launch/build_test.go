package launch

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// of makes what the go command would say of a package.
func of(path, dir string, main bool) found {
	p := found{ImportPath: path, Dir: dir}
	p.Module = &struct {
		Main bool
		Dir  string
	}{Main: main}
	return p
}

func TestTheProgramAroundPackages(t *testing.T) {
	dir, home := t.TempDir(), t.TempDir()
	overlay, place, err := surround([]found{of("example.com/a", home, true), of("example.com/b", "/b", true)}, dir)
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
	a, b := of("m/a", "/a", true), of("m/b", "/b", true)
	inner, innermost := of("m/b/internal/c", "/c", true), of("m/b/internal", "/i", true)
	foreign := of("x/y", "/y", false)
	tests := map[string]struct {
		packages []found
		want     string
	}{
		"one":                              {[]found{b}, "/b"},
		"the first":                        {[]found{a, b}, "/a"},
		"where the internal one is seen":   {[]found{a, inner}, "/c"},
		"in the parent of the internal":    {[]found{a, b, innermost}, "/b"},
		"in the user's own module":         {[]found{foreign, a}, "/a"},
		"anywhere, if there is no such":    {[]found{foreign}, "."},
		"internal of a module of its own":  {[]found{of("internal/c", "/c", true)}, "/c"},
		"internal only in its name's part": {[]found{a, of("m/internals/d", "/d", true)}, "/a"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := home(test.packages); got != test.want {
				t.Errorf("got %s", got)
			}
		})
	}
}

func TestNames(t *testing.T) {
	tests := map[string]struct {
		of    found
		given string
		want  string
	}{
		"a package":              {of("example.com/a/handlers", "", true), "./x", "handlers"},
		"a file":                 {of("command-line-arguments", "", true), "dir/handlers.go", "handlers"},
		"a package of no module": {found{ImportPath: "a"}, "./handlers", "handlers"},
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
