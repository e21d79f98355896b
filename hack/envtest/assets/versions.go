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

// toolsDir holds the module that pins the binaries, relative to the root of the
// repository.
var toolsDir = filepath.Join("hack", "tools", "envtest")

// versions are the pinned releases, as written in the go.mod of toolsDir.
type versions struct {
	kubernetes, etcd string
}

// dir returns the name of the cache folder for this pair of releases.
func (v versions) dir() string { return v.kubernetes + "-etcd-" + v.etcd }

// readVersions reads the pinned releases from a go.mod file.
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
		if isFile(filepath.Join(dir, toolsDir, "go.mod")) {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", errors.New("not inside the repository: no " + toolsDir + " at or above " + start)
		}
	}
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}
