package assets

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// The modules whose versions determine the cache directory.
const (
	kubernetesModule = "k8s.io/kubernetes"
	etcdModule       = "go.etcd.io/etcd/server/v3"
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

// versions are the pinned versions of a release, as written in its go.mod.
type versions struct {
	kubernetes, etcd string
}

// dir returns the name of the cache folder for this pair of releases.
func (v versions) dir() string { return v.kubernetes + "-etcd-" + v.etcd }

// readVersions reads the pinned versions from a go.mod file.
func readVersions(goMod string) (versions, error) {
	content, err := os.ReadFile(goMod)
	if err != nil {
		return versions{}, err
	}
	found := versions{
		kubernetes: requiredVersion(string(content), kubernetesModule),
		etcd:       requiredVersion(string(content), etcdModule),
	}
	if found.kubernetes == "" || found.etcd == "" {
		return versions{}, fmt.Errorf("%s must require both %s and %s", goMod, kubernetesModule, etcdModule)
	}
	return found, nil
}

// requiredVersion finds the version of a module in the text of a go.mod file. It does
// not ask the go command, because tests must not need one at run time.
func requiredVersion(goMod, module string) string {
	for line := range strings.Lines(goMod) {
		fields := strings.Fields(strings.TrimPrefix(line, "require"))
		if len(fields) >= 2 && fields[0] == module && strings.HasPrefix(fields[1], "v") {
			return fields[1]
		}
	}
	return ""
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
