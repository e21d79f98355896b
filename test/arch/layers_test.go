package arch

import "strings"

// module is the import path of the repository's root.
const module = "github.com/kopf-go/kopf/"

// layer is a set of packages at the same height. A folder stands for one package; with
// "/..." at the end, it includes all packages below.
type layer struct {
	name    string
	folders []string
	// only lists the folders that the layer may import from, besides its own. Nil means
	// all lower layers.
	only []string
}

// usersMayImport lists what operators import besides the facade.
var usersMayImport = []string{
	"pkg/backoff", "pkg/hierarchy", "pkg/kopf", "pkg/kopftest", "pkg/lifecycles", "pkg/login", "pkg/settings", "pkg/storage/...", "pkg/tracing", "pkg/webhook/servers",
	"pkg/model/convergence", "pkg/model/diff", "pkg/model/memo", "pkg/model/object", "pkg/model/patch", "pkg/model/rollout", "pkg/model/selector", "pkg/model/stop",
}

// layers lists all layers from top to bottom. A package may import from the layers
// below its own, and from its own folder.
var layers = []layer{
	{name: "tests", folders: []string{"test/..."}},
	{name: "development tools", folders: []string{"hack/..."}},
	{name: "example operators", folders: []string{"examples/..."}, only: usersMayImport},
	{name: "commands", folders: []string{"cmd/..."}, only: append([]string{"internal/binaries", "internal/controlplane", "internal/manifests", "pkg/cli/...", "pkg/serve"}, usersMayImport...)},
	{name: "control planes", folders: []string{"internal/controlplane"}, only: []string{"internal/binaries", "internal/guard"}},
	{name: "handlers in any language", folders: []string{"pkg/serve"}, only: append([]string{"internal/conversion", "internal/handler", "internal/registry", "pkg/cli/...", "pkg/events/...", "pkg/serve/conformance", "pkg/serve/document", "pkg/serve/metacontroller", "pkg/serve/process", "pkg/serve/protocol", "pkg/serve/service", "pkg/serve/side8", "pkg/serve/worker"}, usersMayImport...)},
	{name: "conformance of workers", folders: []string{"pkg/serve/conformance"}, only: []string{"pkg/serve/document", "pkg/serve/process", "pkg/serve/protocol", "pkg/serve/worker"}},
	{name: "controllers of Metacontroller", folders: []string{"pkg/serve/metacontroller"}, only: append([]string{"internal/registry", "pkg/serve/document", "pkg/serve/service"}, usersMayImport...)},
	{name: "workers and services", folders: []string{"pkg/serve/worker", "pkg/serve/service"}, only: []string{"pkg/backoff", "pkg/serve/document", "pkg/serve/process", "pkg/serve/protocol"}},
	{name: "conventions of other operators", folders: []string{"pkg/serve/side8"}, only: []string{"pkg/model/object"}},
	{name: "programs", folders: []string{"pkg/serve/process"}, only: []string{"pkg/serve/protocol"}},
	{name: "messages", folders: []string{"pkg/serve/protocol"}, only: []string{"internal/similar", "pkg/serve/document"}},
	{name: "files", folders: []string{"pkg/serve/document"}, only: []string{"internal/similar", "pkg/backoff", "pkg/model/object", "pkg/model/rollout", "pkg/model/selector", "pkg/settings", "pkg/storage/..."}},
	{name: "test kit", folders: []string{"pkg/kopftest"}},
	{name: "replay of the test kit", folders: []string{"pkg/kopftest/internal/replay"}},
	{name: "parts of the test kit", folders: []string{"pkg/kopftest/internal/apiserver/...", "pkg/kopftest/internal/garbage", "pkg/kopftest/internal/inprocess", "pkg/kopftest/internal/leaks", "pkg/kopftest/internal/sample", "pkg/kopftest/internal/sweep", "pkg/kopftest/internal/watchdog"}, only: []string{"internal/builtin", "pkg/kopftest/internal/..."}},
	{name: "facade", folders: []string{"pkg/kopf"}},
	{name: "operator", folders: []string{"pkg/operator/..."}},
	{name: "command line", folders: []string{"pkg/cli/..."}},
	{name: "page", folders: []string{"pkg/page"}},
	{name: "inspection of programs", folders: []string{"pkg/inspect"}},
	{name: "health", folders: []string{"pkg/health/..."}},
	{name: "permissions", folders: []string{"pkg/rbac"}},
	{name: "engine", folders: []string{"pkg/reconcile/..."}},
	{name: "admission, login, peering and the ring of shards", folders: []string{"pkg/webhook", "pkg/login", "pkg/peering", "pkg/shards/ring"}},
	{name: "admission servers and configurations", folders: []string{"pkg/webhook/servers", "pkg/webhook/configurations"}},
	{name: "certificates", folders: []string{"pkg/webhook/certificates"}},
	{name: "relist", folders: []string{"pkg/internal/relist"}},
	{name: "events and metrics", folders: []string{"pkg/events/...", "pkg/metrics"}},
	{name: "settings", folders: []string{"pkg/settings"}},
	{name: "lifecycles", folders: []string{"pkg/lifecycles"}},
	{name: "registry and index", folders: []string{"internal/registry", "pkg/model/index"}},
	{name: "conversion", folders: []string{"internal/conversion"}},
	{name: "request", folders: []string{"internal/request"}},
	{name: "verdict", folders: []string{"internal/verdict"}},
	{name: "handlers of tests", folders: []string{"internal/handlertest"}},
	{name: "handler", folders: []string{"internal/handler"}},
	{name: "convergence", folders: []string{"pkg/model/convergence"}},
	{name: "selector and shards", folders: []string{"pkg/model/selector", "pkg/shards"}},
	{name: "storage", folders: []string{"pkg/storage/..."}},
	{name: "cause", folders: []string{"pkg/model/cause"}},
	{name: "hierarchy", folders: []string{"pkg/hierarchy"}},
	{name: "patch", folders: []string{"pkg/model/patch"}},
	{name: "diff", folders: []string{"pkg/model/diff"}},
	{name: "condition and memo", folders: []string{"internal/condition", "pkg/model/memo"}},
	{name: "managed fields", folders: []string{"pkg/internal/managedfields"}},
	{name: "known fields", folders: []string{"internal/knownfields"}},
	{name: "object", folders: []string{"pkg/model/object"}},
	{name: "binaries of control planes, manifests, built-in resources, terminals, function names, recomputed values, and schedules", folders: []string{"internal/schedule", "internal/builtin", "internal/binaries", "internal/guard", "internal/manifests", "internal/pty", "internal/function", "internal/recomputed"}},
	{name: "backoff, rollout, stop, tracing, contention, sleep, report once, plural, program, window, similar words, and golden files", folders: []string{"pkg/internal/window", "internal/golden", "pkg/internal/contention", "pkg/backoff", "pkg/model/rollout", "pkg/model/stop", "pkg/tracing", "pkg/internal/sleep", "internal/isolate", "pkg/internal/reportonce", "pkg/internal/plural", "pkg/internal/program", "internal/similar"}},
}

// vocabulary is the top layer of those that make no API calls.
const vocabulary = "settings"

// impure lists the modules that call the API. exempt lists packages of them that only
// have types, or functions of types: the client of handlers, the kind of a typed
// object, and the types of Kubernetes.
var (
	impure = []string{"k8s.io/client-go", "sigs.k8s.io/controller-runtime"}
	exempt = []string{
		"k8s.io/client-go/kubernetes/scheme",
		"sigs.k8s.io/controller-runtime/pkg/client",
		"sigs.k8s.io/controller-runtime/pkg/client/apiutil",
	}
)

// place is the place of a package in the layers.
type place struct {
	layer  int
	folder string
}

// locate returns the place of a package. There is only one
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
