// Package binaries finds the programs of a real control plane: kube-apiserver and etcd.
package binaries

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/version"
)

// Variable names a directory with the programs, as for envtest.
const Variable = "KUBEBUILDER_ASSETS"

// names are the programs.
var names = []string{"kube-apiserver", "etcd"}

// ErrMissing says how to get an API server.
var ErrMissing = errors.New("there is no API server to start: set " + Variable +
	" to a directory with kube-apiserver and etcd, such as the output of `setup-envtest use -p path`; " +
	"or build both once with `make envtest-assets` in a clone of github.com/kopf-go/kopf")

// Find returns the directory that the variable names, or else the best one of the caches: of
// the wanted version ("1.37"), otherwise the newest. The caches are those of this project, and of
// setup-envtest. Directories without both programs, as an interrupted build leaves them, do not
// count.
func Find(wanted string) (string, error) {
	if named := os.Getenv(Variable); named != "" {
		if missing := missingIn(named); missing != "" {
			return "", fmt.Errorf("%s is %s, which does not contain the program %s", Variable, named, missing)
		}
		return named, nil
	}
	var found []string
	for _, pattern := range caches() {
		matches, err := filepath.Glob(pattern)
		if err != nil {
			return "", err
		}
		found = append(found, matches...)
	}
	return best(found, wanted)
}

// caches returns patterns for directories whose names begin with the version.
func caches() []string {
	var patterns []string
	if cache, err := os.UserCacheDir(); err == nil {
		patterns = append(patterns, filepath.Join(cache, "kopf-go", "envtest", "*"), filepath.Join(cache, "kubebuilder-envtest", "k8s", "*"))
	}
	if home, err := os.UserHomeDir(); err == nil {
		data := cmp.Or(os.Getenv("XDG_DATA_HOME"), filepath.Join(home, ".local", "share"))
		patterns = append(patterns, filepath.Join(data, "kubebuilder-envtest", "k8s", "*"))
	}
	return patterns
}

// best returns the complete directory whose version is wanted, or else the newest.
func best(directories []string, wanted string) (string, error) {
	directories = slices.DeleteFunc(directories, func(dir string) bool { return missingIn(dir) != "" || versionOf(dir) == nil })
	if len(directories) == 0 {
		return "", ErrMissing
	}
	return slices.MaxFunc(directories, func(a, b string) int {
		return cmp.Or(compareBool(isMinor(a, wanted), isMinor(b, wanted)), compareVersions(versionOf(a), versionOf(b)))
	}), nil
}

// versionOf returns the version in the name of a directory: "v1.37.0-etcd-v3.7.3",
// "1.37.0-linux-amd64".
func versionOf(dir string) *version.Version {
	text, _, _ := strings.Cut(filepath.Base(dir), "-")
	parsed, err := version.ParseSemantic(text)
	if err != nil {
		return nil
	}
	return parsed
}

func isMinor(dir, wanted string) bool {
	v := versionOf(dir)
	return fmt.Sprintf("%d.%d", v.Major(), v.Minor()) == wanted
}

func compareVersions(a, b *version.Version) int {
	return compareBool(b.LessThan(a), a.LessThan(b))
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	default:
		return -1
	}
}

// missingIn returns the name of a program that a directory does not contain.
func missingIn(dir string) string {
	for _, name := range names {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil || !info.Mode().IsRegular() || info.Mode()&0o111 == 0 {
			return name
		}
	}
	return ""
}
