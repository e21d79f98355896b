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

// facade is the package that declares and runs handlers.
const facade = "github.com/kopf-go/kopf/pkg/kopf"

// goPackage is a package in the output of go list.
type goPackage struct {
	ImportPath, Name, Dir string
	Deps                  []string
	Module                *struct {
		Main bool
		Dir  string
	}
}

// isProgram reports whether the package is a program.
func (p goPackage) isProgram() bool { return p.Name == "main" }

// NotFoundError means that the go command does not find packages.
type NotFoundError struct {
	Packages []string
	Reason   string // of the go command
}

func (e *NotFoundError) Error() string {
	return fmt.Sprintf("the package %s cannot be found: %s", strings.Join(e.Packages, " "), e.Reason)
}

// findPackages lists the packages, and checks that they can be run.
func findPackages(ctx context.Context, packages []string) ([]goPackage, error) {
	arguments := append([]string{"list", "-json=ImportPath,Name,Dir,Deps,Module", "--"}, packages...)
	output, err := exec.CommandContext(ctx, "go", arguments...).Output()
	var failed *exec.ExitError
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return nil, fmt.Errorf("the go command, which builds the packages, is not installed or not in the PATH: %w", err)
	case errors.As(err, &failed):
		return nil, &NotFoundError{packages, string(bytes.TrimSpace(failed.Stderr))}
	case err != nil:
		return nil, err
	}

	var listed []goPackage
	decoder := json.NewDecoder(bytes.NewReader(output))
	for {
		var next goPackage
		err := decoder.Decode(&next)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("the output of go list cannot be read: %w", err)
		}
		listed = append(listed, next)
	}
	if len(listed) == 0 {
		return nil, fmt.Errorf("no packages found in %s", strings.Join(packages, " "))
	}

	for _, p := range listed {
		switch {
		case !slices.Contains(p.Deps, facade):
			return nil, fmt.Errorf("the package %s declares no handlers: it does not import %s", p.ImportPath, facade)
		case p.isProgram() && len(listed) > 1:
			return nil, fmt.Errorf("the package %s is a program: run it without other packages", p.ImportPath)
		case !p.isProgram() && p.Module == nil:
			return nil, fmt.Errorf("the package %s is not in a module: add a go.mod, and pass the directory instead of files", p.ImportPath)
		}
	}
	return listed, nil
}
