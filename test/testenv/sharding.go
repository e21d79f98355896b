package testenv

import (
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/util/version"

	"github.com/kopf-go/kopf/internal/binaries"
)

// shardedListsSince is the first release of Kubernetes with the feature gate ShardedListAndWatch. Older ones do not start
// with a gate that they do not know.
const shardedListsSince = "1.36.0"

// HasShardedLists reports whether the API server filters lists and watches by their parameter shardSelector: if
// Options.ShardedLists asks for it, and the release can do it. It is false for clusters of other processes.
func (c *Cluster) HasShardedLists() bool {
	noteVariables()
	return c.shardedLists
}

// canShardLists reports whether the API server in a directory has the feature gate.
func canShardLists(programs string) (bool, error) {
	said, err := exec.Command(filepath.Join(programs, binaries.APIServer), "--version").Output() //nolint:noctx // takes no time
	if err != nil {
		return false, fmt.Errorf("the version of the API server: %w", err)
	}
	_, text, _ := strings.Cut(strings.TrimSpace(string(said)), " ")
	release, err := version.ParseGeneric(text)
	if err != nil {
		return false, fmt.Errorf("the version of the API server: %w", err)
	}
	return release.AtLeast(version.MustParseGeneric(shardedListsSince)), nil
}

// withShardedLists returns the flags of the API server with the feature gate.
func withShardedLists(flags map[string]string) map[string]string {
	const name, gate = "feature-gates", "ShardedListAndWatch=true"
	added := map[string]string{name: gate}
	maps.Copy(added, flags)
	if others := flags[name]; others != "" {
		added[name] = others + "," + gate
	}
	return added
}
