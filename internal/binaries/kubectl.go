package binaries

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// Kubectl is the name of the program with which the tests of this repository act as people do.
// Control planes do not need it.
const Kubectl = "kubectl"

// ErrNoKubectl is returned if there is no kubectl and nothing may be built.
var ErrNoKubectl = errors.New("kubectl is neither in " + Variable + " nor in the cache")

// FindKubectl returns the path of kubectl: in the directory that the environment names, or else
// in the cache, of exactly this version. It returns ErrNoKubectl, with the path in the cache, if
// there is none.
func FindKubectl(pins Pins) (string, error) {
	if named := os.Getenv(Variable); named != "" && isExecutable(filepath.Join(named, Kubectl)) {
		return filepath.Join(named, Kubectl), nil
	}
	dir, err := Cached(pins)
	if err != nil && !errors.Is(err, ErrMissing) {
		return "", err
	}
	path := filepath.Join(dir, Kubectl)
	if !isExecutable(path) {
		return path, fmt.Errorf("%w: not in %s", ErrNoKubectl, dir)
	}
	return path, nil
}

// BuildKubectl returns the path that FindKubectl returns, and builds the program first if it is
// missing.
func BuildKubectl(ctx context.Context, pins Pins, progress io.Writer) (string, error) {
	path, err := FindKubectl(pins)
	if !errors.Is(err, ErrNoKubectl) {
		return path, err
	}
	return path, buildMissing(ctx, pins, filepath.Dir(path), kubectl, progress)
}

// kubectl returns kubectl, which would otherwise report v0.0.0.
func kubectl(pinned versions) []program {
	return []program{{
		name: Kubectl, pkg: kubernetesModule + "/cmd/kubectl", version: pinned.kubernetes,
		ldflags: strip + " -X k8s.io/component-base/version.gitVersion=" + pinned.kubernetes,
		cost:    "about a minute on two cores",
	}}
}
