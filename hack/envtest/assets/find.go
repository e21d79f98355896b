package assets

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/kopf-go/kopf/internal/binaries"
)

// Find returns the directory that KUBEBUILDER_ASSETS names, or that of the newest release in the
// cache, without building anything. It returns binaries.ErrMissing if there is none.
func Find() (string, error) {
	if named, err := binaries.Named(); named != "" || err != nil {
		return named, err
	}
	dir, err := binaries.Cached(binaries.Newest())
	if errors.Is(err, binaries.ErrMissing) {
		return "", fmt.Errorf("%w: run `make envtest-assets`", err)
	}
	return dir, err
}

// Ensure returns the directory that Find returns, and builds missing binaries first.
func Ensure(ctx context.Context, progress io.Writer) (string, error) {
	dir, err := Find()
	if !errors.Is(err, binaries.ErrMissing) {
		return dir, err
	}
	return EnsureRelease(ctx, Newest, progress)
}

// EnsureRelease is like Ensure, but for the given release, whatever KUBEBUILDER_ASSETS
// names.
func EnsureRelease(ctx context.Context, release Release, progress io.Writer) (string, error) {
	root, err := Root()
	if err != nil {
		return "", err
	}
	pins, err := binaries.ReadPins(release.module(root))
	if err != nil {
		return "", err
	}
	return binaries.Build(ctx, pins, progress)
}

// FindKubectl returns the path of kubectl of the newest release: in the directory that
// KUBEBUILDER_ASSETS names, or else in the cache. It builds nothing.
func FindKubectl() (string, error) {
	path, err := binaries.FindKubectl(binaries.Newest())
	if errors.Is(err, binaries.ErrNoKubectl) {
		return "", fmt.Errorf("%w: run `make envtest-assets`", err)
	}
	return path, err
}

// EnsureKubectl returns the path that FindKubectl returns, and builds the program first if it is
// missing.
func EnsureKubectl(ctx context.Context, progress io.Writer) (string, error) {
	return binaries.BuildKubectl(ctx, binaries.Newest(), progress)
}
