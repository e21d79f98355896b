package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/onsi/ginkgo/v2"

	"github.com/kopf-go/kopf/hack/envtest/assets"
)

var _ = ginkgo.Describe("The documentation", ginkgo.Label("documentation"), func() {
	ginkgo.It("shows code of the examples in the tutorial", func() { tutorialShowsTestedCode(ginkgo.GinkgoTB()) })
	ginkgo.It("lists all examples", func() { indexListsAllExamples(ginkgo.GinkgoTB()) })
})

// listing is a piece of Go or YAML in a document.
var listing = regexp.MustCompile("(?s)```(?:go|yaml)\n(.*?)```")

func tutorialShowsTestedCode(t testing.TB) {
	t.Helper()
	executed := contents(t, "examples/01-minimal/*.go", "examples/tutorial/*.go", "examples/tutorial/*.yaml", "examples/crd/*.yaml")
	listings := listing.FindAllStringSubmatch(contents(t, "docs/tutorial.md"), -1)
	if len(listings) == 0 {
		t.Error("the tutorial shows nothing")
	}
	for _, found := range listings {
		for piece := range strings.SplitSeq(found[1], "\n\n") {
			if !strings.Contains(executed, strings.TrimRight(piece, "\n")+"\n") {
				t.Errorf("no example contains this listing:\n%s", piece)
			}
		}
	}
}

func indexListsAllExamples(t testing.TB) {
	t.Helper()
	index := contents(t, "examples/README.md")
	for _, path := range files(t, "examples/*/main.go") {
		if name := filepath.Base(filepath.Dir(path)); !strings.Contains(index, "["+name+"]("+name+"/main.go)") {
			t.Errorf("examples/README.md does not list %s", name)
		}
	}
}

// contents returns the contents of all files that match the patterns.
func contents(t testing.TB, patterns ...string) string {
	t.Helper()
	var all strings.Builder
	for _, path := range files(t, patterns...) {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(content)
	}
	return all.String()
}

// files returns the files that match the patterns, which are relative to the root of the
// repository. Each pattern must match.
func files(t testing.TB, patterns ...string) []string {
	t.Helper()
	root, err := assets.Root()
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, pattern := range patterns {
		paths, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil || len(paths) == 0 {
			t.Fatalf("there is no %s in %s: %v", pattern, root, err)
		}
		found = append(found, paths...)
	}
	return found
}
