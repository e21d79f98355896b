package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func TestInstallationNamesTheTestedVersions(t *testing.T) {
	page := pages(t)["docs/installation.md"]
	minor := func(file, pattern string) string {
		t.Helper()
		text, err := os.ReadFile(filepath.Join(root(t), file))
		if err != nil {
			t.Fatal(err)
		}
		found := regexp.MustCompile(pattern).FindStringSubmatch(string(text))
		if found == nil {
			t.Fatalf("%s does not match %s", file, pattern)
		}
		return found[1]
	}
	const kubernetes = `k8s\.io/kubernetes v(\d+\.\d+)`
	golang, oldest := minor("go.mod", `(?m)^go (\d+\.\d+)`), minor("hack/tools/envtest/oldest/go.mod", kubernetes)
	wants := []string{
		"| Go " + golang + " and newer.",
		"| Kubernetes " + oldest + " to " + minor("hack/tools/envtest/go.mod", kubernetes) + ":",
	}
	for _, want := range wants {
		if !strings.Contains(page, want) {
			t.Errorf("docs/installation.md does not contain %q", want)
		}
	}
	readme := "You need Go " + golang + " and Kubernetes " + oldest + " or newer"
	if !strings.Contains(pages(t)["README.md"], readme) {
		t.Errorf("README.md does not contain %q", readme)
	}
}
