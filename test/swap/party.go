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
	served   = "serve" // the handlers of Kopf, run by kopf serve of the work tree
)

// party is one of the two operators that are swapped.
type party struct {
	name    string
	command string // for a shell
	isKopf  bool
	// isFormer is set for Kopf, for its handlers with kopf serve, and for a build of this library that has neither the order
	// of handlers nor schedules.
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
	if (o.a == served) != (o.b == served) && o.a != kopf && o.b != kopf {
		return parties, fmt.Errorf("%s has the handlers of Kopf, which have no order: swap it with %s", served, kopf)
	}
	for i, name := range []string{o.a, o.b} {
		into := filepath.Join(dir, fmt.Sprintf("party%d", i))
		if err := os.Mkdir(into, 0o700); err != nil {
			return parties, err
		}
		switch name {
		case kopf:
			parties[i], err = prepareKopf(into, o.kopf)
		case served:
			parties[i], err = prepareServed(ctx, root, into)
		default:
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

// servedFile declares the worker of kopf serve.
const servedFile = `kopf: v1
settings: {posting: {disabled: true}}
workers:
  python:
    command: [python3, kopf.py, handlers.py]
    environment: [SWAP_JOURNAL, SWAP_PROCESS]
`

// prepareServed builds the command kopf, and puts the handlers next to the adapter for Python.
func prepareServed(ctx context.Context, root, dir string) (party, error) {
	adapter, err := os.ReadFile(filepath.Join(root, "examples", "languages", "python", "kopf.py"))
	if err != nil {
		return party{}, err
	}
	for name, content := range map[string][]byte{"kopf.py": adapter, "handlers.py": kopfHandlers, "operator.yaml": []byte(servedFile)} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			return party{}, err
		}
	}
	program := filepath.Join(dir, "kopf")
	if err := build(ctx, root, program, "./cmd/kopf"); err != nil {
		return party{}, err
	}
	command := program + " serve " + filepath.Join(dir, "operator.yaml") + " --namespace {namespace}"
	return party{name: served, command: command, isFormer: true}, nil
}

// prepareBuild builds the operator with the library as it is in a git ref, or in the work tree.
func prepareBuild(ctx context.Context, root, dir, ref string) (party, error) {
	name, tree := ref, root
	if ref != workTree {
		commit, err := git(ctx, root, "rev-parse", "--verify", "--quiet", "--end-of-options", ref+"^{commit}")
		if err != nil {
			return party{}, fmt.Errorf("%q is neither a git ref of this repository, nor %q, %q, or %q: %w", ref, workTree, kopf, served, err)
		}
		if tree, err = extract(ctx, root, dir, strings.TrimSpace(string(commit))); err != nil {
			return party{}, fmt.Errorf("reading the sources of %s: %w", ref, err)
		}
	}
	p := party{name: name, command: filepath.Join(dir, "operator")}
	var tags []string
	schedules, err := filepath.Glob(filepath.Join(tree, "internal", "schedule", "*.go"))
	if err != nil {
		return party{}, err
	}
	if len(schedules) == 0 {
		p.isFormer, tags = true, []string{"former"}
	}
	if err := build(ctx, tree, p.command, "./test/swap/operator", tags...); err != nil {
		return party{}, fmt.Errorf("the operator with %s: %w", name, err)
	}
	if tree != root {
		return p, os.RemoveAll(tree)
	}
	return p, nil
}

// build builds a program of a tree. The paths are trimmed so that the build cache is used although the folder is a new one.
func build(ctx context.Context, tree, program, pkg string, tags ...string) error {
	command := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-tags", strings.Join(tags, ","), "-o", program, pkg)
	command.Dir = tree
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("building %s: %w\n%s", pkg, err, output)
	}
	return nil
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
