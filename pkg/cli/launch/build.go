package launch

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Build builds a program of the packages, as the go command names them, in a
// directory of the caller's, which must be empty, and returns its path. What the
// compiler says goes to log.
func Build(ctx context.Context, packages []string, dir string, log io.Writer) (string, error) {
	listed, err := findPackages(ctx, packages)
	if err != nil {
		return "", err
	}
	program := filepath.Join(dir, "bin", programName(listed[0], packages[0]))
	arguments := []string{"build", "-o", program}
	if listed[0].isProgram() {
		arguments = append(arguments, "--", packages[0])
	} else {
		overlay, main, err := writeOverlay(listed, dir)
		if err != nil {
			return "", err
		}
		arguments = append(arguments, "-overlay", overlay, "--", main)
	}
	command := exec.CommandContext(ctx, "go", arguments...)
	command.Stderr = log
	if err := command.Run(); err != nil {
		return "", cmp.Or(ctx.Err(), fmt.Errorf("the package %s cannot be built: %w", strings.Join(packages, " "), err))
	}
	return program, nil
}

// programName is that of the program: how it speaks of itself.
func programName(of goPackage, given string) string {
	if of.Module == nil || of.ImportPath == "command-line-arguments" {
		return strings.TrimSuffix(filepath.Base(given), ".go")
	}
	return path.Base(of.ImportPath)
}

// mainTemplate is the program around packages of handlers.
const mainTemplate = `package main

import (
	operator "` + facade + `"

%s)

func main() { operator.Main() }
`

// writeOverlay makes a program that is nowhere but in an overlay over the user's
// module: below the first of the packages, so that it may import what is internal
// there. It returns the overlay, and where the program is.
func writeOverlay(packages []goPackage, dir string) (overlay, place string, err error) {
	var imports strings.Builder
	for _, p := range packages {
		fmt.Fprintf(&imports, "\t_ %q\n", p.ImportPath)
	}
	source := filepath.Join(dir, "main.go")
	place = filepath.Join(overlayDir(packages), "zz_"+filepath.Base(dir))
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

// overlayDir is a directory of the user's own module from where all packages may be
// imported, if there is one.
func overlayDir(packages []goPackage) string {
	place := "."
	for _, p := range packages {
		if !p.Module.Main {
			continue
		}
		if place = p.Dir; !slices.ContainsFunc(packages, func(other goPackage) bool { return isInternalTo(p.ImportPath, other.ImportPath) }) {
			break
		}
	}
	return place
}

// isInternalTo reports whether one package may not import the other because that is
// internal.
func isInternalTo(importer, imported string) bool {
	imported += "/"
	at := strings.LastIndex(imported, "/internal/")
	return at >= 0 && !strings.HasPrefix(importer+"/", imported[:at+1])
}
