package launch

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Build builds a program from packages, which are named as for the go command, in an empty
// directory, and returns the path of the program. It writes the messages of the compiler to
// log.
func Build(ctx context.Context, packages []string, dir string, log io.Writer) (string, error) {
	listed, err := findPackages(ctx, packages)
	if err != nil {
		return "", err
	}
	program := filepath.Join(dir, "bin", programName(listed[0], packages[0]))
	main := packages[0]
	var flags []string
	if !listed[0].isProgram() {
		var overlay string
		if overlay, main, err = writeOverlay(listed, dir); err != nil {
			return "", err
		}
		flags = []string{"-overlay", overlay}
	}
	command := exec.CommandContext(ctx, "go", BuildArguments(main, program, flags...)...)
	command.Stderr = log
	if err := errors.Join(os.MkdirAll(filepath.Dir(program), 0o700), command.Run()); err != nil {
		return "", cmp.Or(ctx.Err(), fmt.Errorf("building the package %s failed: %w", strings.Join(packages, " "), err))
	}
	return program, nil
}

// BuildArguments returns the arguments of the go command that builds a program in an existing folder from the package main, with
// further flags. With go run, it keeps the program, and links only what has changed: that takes longer than everything
// else that most commands do.
func BuildArguments(main, program string, flags ...string) []string {
	if _, err := exec.LookPath("cp"); err != nil { // as on Windows
		return slices.Concat([]string{"build", "-o", program}, flags, []string{"--", main})
	}
	return slices.Concat([]string{"run", "-exec", "cp"}, flags, []string{"--", main, program})
}

// programName returns the name of the program, which its messages contain.
func programName(of goPackage, given string) string {
	if of.Module == nil || of.ImportPath == "command-line-arguments" {
		return strings.TrimSuffix(filepath.Base(given), ".go")
	}
	return path.Base(of.ImportPath)
}

// mainTemplate is the program that imports packages of handlers.
const mainTemplate = `package main

import (
	operator "` + facade + `"

%s)

func main() { operator.Main() }
`

// writeOverlay creates a program that exists only in an overlay over the user's module. It
// is below one of the packages, so that it may import internal packages there. It returns
// the path of the overlay and the directory of the program.
func writeOverlay(packages []goPackage, dir string) (overlay, place string, err error) {
	var imports strings.Builder
	for _, p := range packages {
		fmt.Fprintf(&imports, "\t_ %q\n", p.ImportPath)
	}
	source := filepath.Join(dir, "main.go")
	place = filepath.Join(overlayDir(packages), fmt.Sprintf("zz_%x", sha256.Sum256([]byte(imports.String())))) // the same each time
	text, err := json.Marshal(map[string]any{"Replace": map[string]string{filepath.Join(place, "main.go"): source}})
	if err != nil {
		return "", "", err
	}
	overlay = filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(source, fmt.Appendf(nil, mainTemplate, imports.String()), 0o600); err != nil {
		return "", "", err
	}
	return overlay, place, os.WriteFile(overlay, text, 0o600)
}

// overlayDir returns a directory of the user's module from which all packages may be
// imported, if there is one.
func overlayDir(packages []goPackage) string {
	place := "."
	for _, p := range packages {
		if !p.Module.Main {
			continue
		}
		place = p.Dir
		if !slices.ContainsFunc(packages, func(other goPackage) bool { return isInternalTo(p.ImportPath, other.ImportPath) }) {
			break
		}
	}
	return place
}

// isInternalTo reports whether the importer may not import a package because it is
// internal.
func isInternalTo(importer, imported string) bool {
	imported += "/"
	at := strings.LastIndex(imported, "/internal/")
	return at >= 0 && !strings.HasPrefix(importer+"/", imported[:at+1])
}
