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

// Variable is the environment variable of controller-runtime's envtest for a directory
// with the programs. It takes precedence over the caches.
const Variable = "KUBEBUILDER_ASSETS"

// The names of the programs, in the order of their builds: the quick one first.
const (
	Etcd      = "etcd"
	APIServer = "kube-apiserver"
)

// ErrMissing is returned if there are no programs and nothing may be built.
var ErrMissing = errors.New("kube-apiserver and etcd are neither in " + Variable + " nor in the cache")

// Named returns the directory that the environment names, or "" if it names none. A directory
// without both programs is an error.
func Named() (string, error) {
	named := os.Getenv(Variable)
	if named == "" {
		return "", nil
	}
	if missing := missingIn(named); missing != "" {
		return "", fmt.Errorf("%s is %s, which does not contain the program %s", Variable, named, missing)
	}
	return named, nil
}

// Find returns the directory that the environment names, or else the best one of the caches: of
// the wanted version ("1.37"), otherwise the newest. The caches are those of this project, and of
// setup-envtest. Directories without both programs, as an interrupted build leaves them, do not
// count. Find returns ErrMissing if there is none.
func Find(wanted string) (string, error) {
	if named, err := Named(); named != "" || err != nil {
		return named, err
	}

	// The names of the directories begin with the version.
	var patterns []string
	if cache, err := os.UserCacheDir(); err == nil {
		patterns = append(patterns, filepath.Join(builtIn(cache), "*"), filepath.Join(cache, "kubebuilder-envtest", "k8s", "*"))
	}
	if home, err := os.UserHomeDir(); err == nil {
		data := cmp.Or(os.Getenv("XDG_DATA_HOME"), filepath.Join(home, ".local", "share"))
		patterns = append(patterns, filepath.Join(data, "kubebuilder-envtest", "k8s", "*"))
	}
	var found []string
	for _, pattern := range patterns {
		matches, err := filepath.Glob(pattern)
		if err != nil {
			return "", err
		}
		found = append(found, matches...)
	}
	found = slices.DeleteFunc(found, func(dir string) bool { return missingIn(dir) != "" || versionOf(dir) == nil })
	if len(found) == 0 {
		return "", ErrMissing
	}
	return slices.MaxFunc(found, func(a, b string) int {
		return cmp.Or(compareBool(isMinor(a, wanted), isMinor(b, wanted)), compareVersions(versionOf(a), versionOf(b)))
	}), nil
}

// builtIn returns the directory for the programs that this project builds.
func builtIn(cache string) string { return filepath.Join(cache, "kopf-go", "envtest") }

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
	for _, name := range []string{APIServer, Etcd} {
		if !isExecutable(filepath.Join(dir, name)) {
			return name
		}
	}
	return ""
}

func isExecutable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}
