package launch

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
)

// facade is what declares handlers, and runs them.
const facade = "github.com/kopf-go/kopf/pkg/kopf"

// goPackage is what the go command knows of a package.
type goPackage struct {
	ImportPath, Name, Dir string
	Deps                  []string
	Module                *struct {
		Main bool
		Dir  string
	}
}

// isProgram reports whether the package can be run as it is.
func (p goPackage) isProgram() bool { return p.Name == "main" }

// findPackages looks for the packages, and for what makes them useless.
func findPackages(ctx context.Context, packages []string) ([]goPackage, error) {
	listed, err := goList(ctx, packages)
	if err != nil {
		return nil, err
	}
	for _, p := range listed {
		switch {
		case !slices.Contains(p.Deps, facade):
			return nil, fmt.Errorf("the package %s has no handlers: it does not import %s", p.ImportPath, facade)
		case p.isProgram() && len(listed) > 1:
			return nil, fmt.Errorf("the package %s is a program: run it alone", p.ImportPath)
		case !p.isProgram() && p.Module == nil:
			return nil, fmt.Errorf("the package %s is in no module: put a go.mod above it, and name its directory, not its files", p.ImportPath)
		}
	}
	return listed, nil
}

func goList(ctx context.Context, packages []string) ([]goPackage, error) {
	arguments := append([]string{"list", "-json=ImportPath,Name,Dir,Deps,Module", "--"}, packages...)
	output, err := exec.CommandContext(ctx, "go", arguments...).Output()
	if err != nil {
		return nil, listError(packages, err)
	}
	var listed []goPackage
	for decoder := json.NewDecoder(bytes.NewReader(output)); ; {
		var next goPackage
		switch err := decoder.Decode(&next); {
		case errors.Is(err, io.EOF) && len(listed) == 0:
			return nil, fmt.Errorf("there is no package in %s", strings.Join(packages, " "))
		case errors.Is(err, io.EOF):
			return listed, nil
		case err != nil:
			return nil, fmt.Errorf("what go list says is not understood: %w", err)
		}
		listed = append(listed, next)
	}
}

// listError explains why there is no list.
func listError(packages []string, err error) error {
	var failed *exec.ExitError
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return fmt.Errorf("the go command is not installed, or not in the PATH; packages are built with it: %w", err)
	case errors.As(err, &failed):
		return fmt.Errorf("there is no package %s: %s", strings.Join(packages, " "), bytes.TrimSpace(failed.Stderr))
	default:
		return err
	}
}
