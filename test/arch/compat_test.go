package arch

import (
	"strings"
	"testing"

	"github.com/kopf-go/kopf/hack/source"
)

// noPromise is in the comments of packages that users must not rely on.
const noPromise = "This package carries no compatibility promise."

func TestPackagesSayWhetherUsersMayRelyOnThem(t *testing.T) {
	tree, err := typed()
	if err != nil {
		t.Fatal(err)
	}
	for _, pkg := range tree.Packages {
		comment := ""
		for _, file := range pkg.Files {
			comment += file.Doc.Text()
		}
		says := strings.Contains(strings.Join(strings.Fields(comment), " "), noPromise)
		hidden := strings.Contains("/"+pkg.Path+"/", "/internal/") || strings.Contains(pkg.Path, "/testdata/")
		switch {
		case source.IsPromised(pkg.Path) && says:
			t.Errorf("%s is a promised package, but its comment says: %s", pkg.Path, noPromise)
		case !source.IsPromised(pkg.Path) && !hidden && !says:
			t.Errorf("the comment of %s must say: %s", pkg.Path, noPromise)
		}
	}
}
