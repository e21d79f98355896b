package arch

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestImportsPointDownward(t *testing.T) {
	for _, pkg := range list(t) {
		for _, imported := range pkg.imports() {
			if broken := violation(pkg.ImportPath, imported); broken != "" {
				t.Errorf("%s must not import %s: %s", pkg.ImportPath, imported, broken)
			}
		}
	}
}

// violation returns the rule that an import breaks; it is empty for an allowed import.
func violation(importer, imported string) string {
	from, known := locate(importer)
	if !known {
		return "the importer has no place in the layers of test/arch/layers_test.go"
	}
	if !strings.HasPrefix(imported, module) {
		return impurity(from, imported)
	}
	to, known := locate(imported)
	if !known {
		return "the imported package has no place in the layers of test/arch/layers_test.go"
	}
	upper, lower := layers[from.layer], layers[to.layer]
	switch {
	case from.folder == to.folder:
		return ""
	case from.layer == to.layer:
		return fmt.Sprintf("%s and %s are both in the layer %q and must not know each other", from.folder, to.folder, upper.name)
	case from.layer > to.layer:
		return fmt.Sprintf("imports point downward only, and the layer %q is above %q", lower.name, upper.name)
	case upper.only != nil && !slices.Contains(upper.only, to.folder):
		return fmt.Sprintf("the layer %q may import only %s, like users", upper.name, strings.Join(upper.only, ", "))
	default:
		return ""
	}
}

// impurity returns the rule that an import from another module breaks.
func impurity(from place, imported string) string {
	if from.layer < layerNamed(vocabulary) || slices.Contains(exempt, imported) {
		return ""
	}
	for _, root := range impure {
		if within(imported, root) {
			return "the vocabulary (" + layers[from.layer].name + ") makes no API calls"
		}
	}
	return ""
}

func TestEveryPackageHasOnePlace(t *testing.T) {
	for _, pkg := range list(t) {
		places := 0
		for _, layer := range layers {
			for _, folder := range layer.folders {
				if matches(strings.TrimPrefix(pkg.ImportPath, module), folder) {
					places++
				}
			}
		}
		if places != 1 {
			t.Errorf("%s has %d places in the layers of test/arch/layers_test.go, want 1", pkg.ImportPath, places)
		}
	}
}

func TestViolation(t *testing.T) {
	tests := map[string]struct{ importer, imported, want string }{
		"downward":                              {"pkg/reconcile", "pkg/model/object", ""},
		"within the same folder":                {"pkg/reconcile/call", "pkg/reconcile/internal/kube", ""},
		"an example that imports the facade":    {"examples/01-minimal", "pkg/kopf", ""},
		"an example with API types":             {"examples/12-typed", "examples/12-typed/api/v1", ""},
		"a test of a package":                   {"test/integration/posting", "pkg/events", ""},
		"the facade above the command line":     {"pkg/kopf", "pkg/cli", ""},
		"the standard library":                  {"pkg/model/object", "net/http", ""},
		"the engine as a client":                {"pkg/reconcile", "k8s.io/client-go/rest", ""},
		"the client of handlers":                {"internal/handler", "sigs.k8s.io/controller-runtime/pkg/client", ""},
		"upward to the facade":                  {"pkg/reconcile", "pkg/kopf", `"facade" is above "engine"`},
		"upward in the vocabulary":              {"pkg/model/diff", "pkg/model/patch", `"patch" is above "diff"`},
		"upward to tests":                       {"pkg/model/object", "test/testenv", `"tests" is above "object"`},
		"upward to tools":                       {"pkg/kopf", "hack/envtest/assets", `"development tools" is above "facade"`},
		"sideways":                              {"pkg/webhook", "pkg/peering", "must not know each other"},
		"an example that imports the engine":    {"examples/01-minimal", "pkg/reconcile", "like users"},
		"a command that imports the vocabulary": {"cmd/kopf", "internal/registry", "like users"},
		"API calls in the vocabulary":           {"internal/registry", "k8s.io/client-go/rest", "makes no API calls"},
		"a manager in the vocabulary":           {"internal/handler", "sigs.k8s.io/controller-runtime/pkg/manager", "makes no API calls"},
		"a new package":                         {"pkg/model/novelty", "pkg/model/object", "the importer has no place"},
		"an import of a new package":            {"pkg/kopf", "pkg/model/novelty", "the imported package has no place"},
		"a name with the prefix of a folder":    {"pkg/kopfish", "pkg/model/object", "the importer has no place"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			imported := test.imported
			if _, ours := locate(imported); ours || strings.HasPrefix(imported, "pkg/") {
				imported = module + imported
			}
			got := violation(module+test.importer, imported)
			if (test.want == "") != (got == "") || !strings.Contains(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
