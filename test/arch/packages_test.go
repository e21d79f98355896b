package arch

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
)

// pkg describes a package. Its fields are named as in `go list -json`.
type pkg struct {
	ImportPath, Dir                                              string
	Imports, TestImports, XTestImports                           []string
	GoFiles, IgnoredGoFiles, CgoFiles, TestGoFiles, XTestGoFiles []string
}

// imports returns the imports of the package and of its tests.
func (p pkg) imports() []string {
	all := slices.Concat(p.Imports, p.TestImports, p.XTestImports)
	all = slices.DeleteFunc(all, func(path string) bool { return path == p.ImportPath })
	slices.Sort(all)
	return slices.Compact(all)
}

// files returns the paths of all sources of the package, including tests.
func (p pkg) files() []string {
	names := slices.Concat(p.GoFiles, p.IgnoredGoFiles, p.CgoFiles, p.TestGoFiles, p.XTestGoFiles)
	for i, name := range names {
		names[i] = filepath.Join(p.Dir, name)
	}
	return names
}

// list returns all packages of the module.
func list(t *testing.T) []pkg {
	t.Helper()
	command := exec.CommandContext(t.Context(), "go", "list", "-e",
		"-json=ImportPath,Dir,Imports,TestImports,XTestImports,GoFiles,IgnoredGoFiles,CgoFiles,TestGoFiles,XTestGoFiles", module+"...")
	output, err := command.Output()
	if err != nil {
		var failed *exec.ExitError
		if errors.As(err, &failed) {
			t.Fatalf("%v: %s", err, failed.Stderr)
		}
		t.Fatal(err)
	}
	return decode(t, output)
}

func decode(t *testing.T, output []byte) []pkg {
	t.Helper()
	var all []pkg
	for decoder := json.NewDecoder(bytes.NewReader(output)); ; {
		var one pkg
		switch err := decoder.Decode(&one); {
		case errors.Is(err, io.EOF):
			return all
		case err != nil:
			t.Fatal(err)
		}
		all = append(all, one)
	}
}
