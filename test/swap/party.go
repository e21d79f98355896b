package main

import (
	"archive/zip"
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/kopf-go/kopf/hack/envtest/assets"
)

// The names of parties that are not git refs.
const (
	workTree = "."
	kopf     = "kopf"
)

// party is one of the two operators that are swapped.
type party struct {
	name    string
	command string // for a shell
	isKopf  bool
	// isFormer is set for Kopf, and for a build of this library that has neither the order of handlers nor schedules.
	isFormer bool
}

//go:embed handlers.py
var kopfHandlers []byte

//go:embed operator/main.go operator/later.go operator/former.go
var operatorSources embed.FS

// prepare builds both operators in dir.
func prepare(ctx context.Context, dir string, o options) (parties [2]party, err error) {
	root, err := assets.Root()
	if err != nil {
		return parties, err
	}
	for i, name := range []string{o.a, o.b} {
		into := filepath.Join(dir, fmt.Sprintf("party%d", i))
		if err := os.Mkdir(into, 0o700); err != nil {
			return parties, err
		}
		if name == kopf {
			parties[i], err = prepareKopf(into, o.kopf)
		} else {
			parties[i], err = prepareBuild(ctx, root, into, name)
		}
		if err != nil {
			return parties, err
		}
	}
	return parties, nil
}

func prepareKopf(dir, command string) (party, error) {
	if !strings.Contains(command, "{file}") {
		return party{}, fmt.Errorf("the command that runs Kopf is %q, without {file}: set -kopf or KOPF_COMMAND, "+
			"for example to 'kopf run --standalone -n {namespace} {file}', with Kopf installed by pip", command)
	}
	program, _, _ := strings.Cut(strings.TrimSpace(command), " ")
	if _, err := exec.LookPath(program); err != nil {
		return party{}, fmt.Errorf("the command of -kopf cannot be run: %w; install Kopf, or correct the command", err)
	}
	file := filepath.Join(dir, "handlers.py")
	return party{name: kopf, command: strings.ReplaceAll(command, "{file}", file), isKopf: true, isFormer: true}, os.WriteFile(file, kopfHandlers, 0o600)
}

// prepareBuild builds the operator with the library as it is in a git ref, or in the work tree.
func prepareBuild(ctx context.Context, root, dir, ref string) (party, error) {
	name, tree := ref, root
	if ref != workTree {
		commit, err := git(ctx, root, "rev-parse", "--verify", "--quiet", "--end-of-options", ref+"^{commit}")
		if err != nil {
			return party{}, fmt.Errorf("%q is neither a git ref of this repository, nor %q, nor %q: %w", ref, workTree, kopf, err)
		}
		if tree, err = extract(ctx, root, dir, strings.TrimSpace(string(commit))); err != nil {
			return party{}, fmt.Errorf("reading the sources of %s: %w", ref, err)
		}
	}
	p := party{name: name, command: filepath.Join(dir, "operator")}
	tags := ""
	schedules, err := filepath.Glob(filepath.Join(tree, "internal", "schedule", "*.go"))
	if err != nil {
		return party{}, err
	}
	if len(schedules) == 0 {
		p.isFormer, tags = true, "former"
	}
	// The paths are trimmed so that the build cache is used although the folder is a new one.
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-tags", tags, "-o", p.command, "./test/swap/operator")
	build.Dir = tree
	if output, err := build.CombinedOutput(); err != nil {
		return party{}, fmt.Errorf("building the operator with %s: %w\n%s", name, err, output)
	}
	if tree != root {
		return p, os.RemoveAll(tree)
	}
	return p, nil
}

// extract writes the library of a commit below dir, with the operator of this program.
func extract(ctx context.Context, root, dir, commit string) (tree string, err error) {
	archive, err := git(ctx, root, "archive", "--format=zip", commit, "go.mod", "go.sum", "internal", "pkg")
	if err != nil {
		return "", err
	}
	files, err := zip.NewReader(bytes.NewReader(archive), int64(len(archive)))
	if err != nil {
		return "", err
	}
	tree = filepath.Join(dir, "tree")
	if err := os.CopyFS(tree, files); err != nil {
		return "", err
	}
	swap := filepath.Join(tree, "test", "swap")
	if err := os.MkdirAll(swap, 0o700); err != nil {
		return "", err
	}
	return tree, os.CopyFS(swap, operatorSources)
}

func git(ctx context.Context, root string, args ...string) ([]byte, error) {
	output, err := exec.CommandContext(ctx, "git", append([]string{"-C", root}, args...)...).Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && len(exit.Stderr) > 0 {
		return nil, fmt.Errorf("%w: %s", err, bytes.TrimSpace(exit.Stderr))
	}
	if errors.Is(err, exec.ErrNotFound) {
		return nil, fmt.Errorf("%w: install git, or use -a %s", err, workTree)
	}
	return output, err
}
