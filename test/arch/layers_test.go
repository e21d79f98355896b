package arch

import "strings"

// module is the import path of the repository's root.
const module = "github.com/kopf-go/kopf/"

// layer is a set of packages at the same height. A folder stands for everything
// in it, except for what another layer names more closely.
type layer struct {
	name    string
	folders []string
	// only, when set, are all the folders it may import from, besides its own.
	only []string
}

// layers are listed from the top to the bottom: a package may import from the
// layers below its own, and from its own folder.
var layers = []layer{
	{name: "tests", folders: []string{"test"}},
	{name: "development tools", folders: []string{"hack"}},
	{name: "example operators", folders: []string{"examples"}, only: []string{"pkg/kopf", "pkg/kopf/kopftest", "pkg/kopf/object", "pkg/kopf/storage"}},
	{name: "commands", folders: []string{"cmd"}, only: []string{"pkg/kopf", "pkg/kopf/cli"}},
	{name: "test kit", folders: []string{"pkg/kopf/kopftest"}},
	{name: "facade", folders: []string{"pkg/kopf"}},
	{name: "operator", folders: []string{"pkg/operator"}},
	{name: "command line", folders: []string{"pkg/kopf/cli"}},
	{name: "health", folders: []string{"pkg/health"}},
	{name: "engine", folders: []string{"pkg/reconcile"}},
	{name: "admission, login and peering", folders: []string{"pkg/webhook", "pkg/login", "pkg/peering"}},
	{name: "admission servers and configurations", folders: []string{"pkg/webhook/servers", "pkg/webhook/configurations"}},
	{name: "certificates", folders: []string{"pkg/webhook/certificates"}},
	{name: "settings", folders: []string{"pkg/kopf/settings"}},
	{name: "registry and index", folders: []string{"pkg/kopf/registry", "pkg/kopf/index"}},
	{name: "handler", folders: []string{"pkg/kopf/handler"}},
	{name: "selector", folders: []string{"pkg/kopf/selector"}},
	{name: "storage", folders: []string{"pkg/kopf/storage"}},
	{name: "cause", folders: []string{"pkg/kopf/cause"}},
	{name: "patch", folders: []string{"pkg/kopf/patch"}},
	{name: "diff", folders: []string{"pkg/kopf/diff"}},
	{name: "hierarchy and memo", folders: []string{"pkg/kopf/hierarchy", "pkg/kopf/memo"}},
	{name: "object", folders: []string{"pkg/kopf/object"}},
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

// locate finds the place of a package by the longest folder that holds it. The
// facade stands for itself alone: a package beside it that no layer names has no
// place.
func locate(path string) (place, bool) {
	path = strings.TrimPrefix(path, module)
	found := place{layer: -1}
	for i, layer := range layers {
		for _, folder := range layer.folders {
			if within(path, folder) && len(folder) > len(found.folder) {
				found = place{layer: i, folder: folder}
			}
		}
	}
	alone := found.folder != "pkg/kopf" || path == "pkg/kopf"
	return found, found.layer >= 0 && alone
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
