package source

import (
	"path"
	"slices"
)

// promised are the packages whose API users may rely on, as patterns of paths below
// the module. All other packages under pkg are internal, or say in their comment
// that they carry no compatibility promise.
var promised = []string{
	"pkg/kopf", "pkg/kopftest", "pkg/backoff", "pkg/lifecycles", "pkg/settings", "pkg/storage", "pkg/hierarchy",
	"pkg/model/cause", "pkg/model/convergence", "pkg/model/diff", "pkg/model/index", "pkg/model/memo", "pkg/model/object", "pkg/model/patch",
	"pkg/model/rollout", "pkg/model/selector", "pkg/model/stop", "pkg/login", "pkg/tracing", "pkg/webhook/servers",
}

// IsPromised reports whether users may rely on the API of the package.
func IsPromised(pkg string) bool {
	return slices.ContainsFunc(promised, func(pattern string) bool {
		matched, err := path.Match(pattern, pkg)
		return err == nil && matched
	})
}

// Promised returns the packages of the tree whose API users may rely on.
func (t *Tree) Promised() []*Package {
	var found []*Package
	for _, pkg := range t.Packages {
		if IsPromised(pkg.Path) {
			found = append(found, pkg)
		}
	}
	return found
}
