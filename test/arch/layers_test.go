package arch

import "strings"

// module is the import path of the repository's root.
const module = "github.com/kopf-go/kopf/"

// layer is a set of packages at the same height. A folder is one package; one that
// ends in "/..." is a package with everything below it.
type layer struct {
	name    string
	folders []string
	// only, when set, are all the folders it may import from, besides its own.
	only []string
}

// layers are listed from the top to the bottom: a package may import from the
// layers below its own, and from its own folder.
var layers = []layer{
	{name: "tests", folders: []string{"test/..."}},
	{name: "development tools", folders: []string{"hack/..."}},
	{name: "example operators", folders: []string{"examples/..."}, only: []string{"pkg/kopf", "pkg/kopftest", "pkg/model/object", "pkg/storage/..."}},
	{name: "commands", folders: []string{"cmd/..."}, only: []string{"pkg/kopf", "pkg/cli/..."}},
	{name: "test kit", folders: []string{"pkg/kopftest"}},
	{name: "facade", folders: []string{"pkg/kopf"}},
	{name: "operator", folders: []string{"pkg/operator/..."}},
	{name: "command line", folders: []string{"pkg/cli/..."}},
	{name: "health", folders: []string{"pkg/health/..."}},
	{name: "engine", folders: []string{"pkg/reconcile/..."}},
	{name: "admission, login and peering", folders: []string{"pkg/webhook", "pkg/login", "pkg/peering"}},
	{name: "admission servers and configurations", folders: []string{"pkg/webhook/servers", "pkg/webhook/configurations"}},
	{name: "certificates", folders: []string{"pkg/webhook/certificates"}},
	{name: "events and metrics", folders: []string{"pkg/events/...", "pkg/metrics"}},
	{name: "settings", folders: []string{"pkg/settings"}},
	{name: "registry and index", folders: []string{"pkg/model/registry", "pkg/model/index"}},
	{name: "handler", folders: []string{"pkg/model/handler"}},
	{name: "selector", folders: []string{"pkg/model/selector"}},
	{name: "storage", folders: []string{"pkg/storage/..."}},
	{name: "cause", folders: []string{"pkg/model/cause"}},
	{name: "patch", folders: []string{"pkg/model/patch"}},
	{name: "diff", folders: []string{"pkg/model/diff"}},
	{name: "hierarchy and memo", folders: []string{"pkg/hierarchy", "pkg/model/memo"}},
	{name: "managed fields", folders: []string{"pkg/internal/managedfields"}},
	{name: "object", folders: []string{"pkg/model/object"}},
	{name: "sleep", folders: []string{"pkg/internal/sleep"}},
}

// vocabulary is the first layer of those that make no API calls: all from here
// to the bottom.
const vocabulary = "settings"

// impure are the modules that talk to a cluster. Exempt is what they offer as
// mere types, or as functions of types: the client that handlers are given, the
// kind of a typed object, and the types of Kubernetes itself.
var (
	impure = []string{"k8s.io/client-go", "sigs.k8s.io/controller-runtime"}
	exempt = []string{
		"k8s.io/client-go/kubernetes/scheme",
		"sigs.k8s.io/controller-runtime/pkg/client",
		"sigs.k8s.io/controller-runtime/pkg/client/apiutil",
	}
)

// place is where a package is in the layers.
type place struct {
	layer  int
	folder string
}

// locate finds the place of a package, which is the first one: there is no second
// (TestEveryPackageHasOnePlace).
func locate(path string) (place, bool) {
	path = strings.TrimPrefix(path, module)
	for i, layer := range layers {
		for _, folder := range layer.folders {
			if matches(path, folder) {
				return place{layer: i, folder: folder}, true
			}
		}
	}
	return place{layer: -1}, false
}

// matches reports whether a folder of a layer holds the package.
func matches(path, folder string) bool {
	tree, whole := strings.CutSuffix(folder, "/...")
	return path == tree || whole && within(path, tree)
}

func within(path, folder string) bool {
	return path == folder || strings.HasPrefix(path, folder+"/")
}

func layerNamed(name string) int {
	for i, layer := range layers {
		if layer.name == name {
			return i
		}
	}
	return -1
}
