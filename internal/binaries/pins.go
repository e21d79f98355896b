package binaries

import (
	_ "embed" // for the pins
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

// Pins are the files of a module whose dependencies are the programs of one release of
// Kubernetes.
type Pins struct{ GoMod, GoSum []byte }

// The files of a module cannot be embedded in another one, so these are copies.
var (
	//go:embed newest/pins.mod
	newestMod []byte
	//go:embed newest/pins.sum
	newestSum []byte
)

// Newest returns the pins of the newest Kubernetes that this project supports.
func Newest() Pins { return Pins{GoMod: newestMod, GoSum: newestSum} }

// ReadPins reads the pins in the directory of a module.
func ReadPins(module string) (pins Pins, err error) {
	pins.GoMod, err = os.ReadFile(filepath.Join(module, "go.mod"))
	if err != nil {
		return Pins{}, err
	}
	pins.GoSum, err = os.ReadFile(filepath.Join(module, "go.sum"))
	return pins, err
}

// write makes a module of the pins.
func (p Pins) write(module string) error {
	if err := os.MkdirAll(module, 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(module, "go.mod"), p.GoMod, 0o600); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(module, "go.sum"), p.GoSum, 0o600)
}

// versions are the pinned versions of a release.
type versions struct {
	kubernetes, etcd string
}

// dir returns the name of the cache folder for this pair of releases.
func (v versions) dir() string { return v.kubernetes + "-etcd-" + v.etcd }

// versions returns the versions of the programs.
func (p Pins) versions() (versions, error) {
	found := versions{
		kubernetes: requiredVersion(string(p.GoMod), kubernetesModule),
		etcd:       requiredVersion(string(p.GoMod), etcdModule),
	}
	if found.kubernetes == "" || found.etcd == "" {
		return versions{}, fmt.Errorf("the go.mod file of the control plane must require both %s and %s", kubernetesModule, etcdModule)
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
