package assets

import (
	"errors"
	"os"
	"path/filepath"
)

// Release is a release of Kubernetes that the tests run on. Its value is the directory
// of the module that pins its binaries, relative to the root of the repository.
type Release string

// The newest supported release, which most tests run on, and the oldest one.
const (
	Newest Release = "hack/tools/envtest"
	Oldest Release = "hack/tools/envtest/oldest"
)

// module returns the directory of the module in the repository at root.
func (r Release) module(root string) string {
	return filepath.Join(root, filepath.FromSlash(string(r)))
}

// Root returns the root of the repository, which is the working directory or a parent
// of it: the working directory of a test is its package.
func Root() (string, error) {
	start, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		if isFile(filepath.Join(Newest.module(dir), "go.mod")) {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", errors.New("not inside the repository: no " + string(Newest) + " at or above " + start)
		}
	}
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}
