package assets

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// The names of the binaries, in the order of their builds: the quick one first.
const (
	Etcd      = "etcd"
	APIServer = "kube-apiserver"
)

// Variable is the environment variable of controller-runtime's envtest for a directory
// with the binaries. It takes precedence over the cache.
const Variable = "KUBEBUILDER_ASSETS"

// ErrMissing is returned if the binaries are neither in KUBEBUILDER_ASSETS nor in the
// cache.
var ErrMissing = errors.New("kube-apiserver and etcd are not built yet: run `make envtest-assets`")

// Find returns the directory that contains both binaries of the newest release, or those
// that KUBEBUILDER_ASSETS names, without building them. It returns ErrMissing if there is
// none.
func Find() (string, error) {
	if dir := os.Getenv(Variable); dir != "" && complete(dir) {
		return dir, nil
	}
	dir, _, err := cache(Newest)
	if err != nil {
		return "", err
	}
	if !complete(dir) {
		return "", fmt.Errorf("%w (looked in %s=%q and in %s)", ErrMissing, Variable, os.Getenv(Variable), dir)
	}
	return dir, nil
}

// cache returns the directory for the binaries of a release, which may not exist.
func cache(release Release) (string, versions, error) {
	root, err := Root()
	if err != nil {
		return "", versions{}, err
	}
	pinned, err := readVersions(filepath.Join(release.module(root), "go.mod"))
	if err != nil {
		return "", versions{}, err
	}
	base, err := os.UserCacheDir()
	if err != nil {
		return "", versions{}, fmt.Errorf("no cache directory for kube-apiserver and etcd: %w", err)
	}
	return filepath.Join(base, "kopf-go", "envtest", pinned.dir()), pinned, nil
}

func complete(dir string) bool {
	return isExecutable(filepath.Join(dir, Etcd)) && isExecutable(filepath.Join(dir, APIServer))
}

func isExecutable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}
