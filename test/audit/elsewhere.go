package audit

import (
	"bytes"
	"os"
	"path"
	"path/filepath"
	"testing"

	"github.com/kopf-go/kopf/hack/envtest/assets"
)

// CheckTests fails if a test that should use a permission does not exist, or if its name has no
// reason. The name of a test begins with the folder: "test/integration/permissions.TestX".
func CheckTests(t testing.TB, elsewhere map[Use]Elsewhere) {
	t.Helper()
	for use, e := range elsewhere {
		if e.Why == "" || !exists(t, e.Test) {
			t.Errorf("%s %s: there is no reason, or no test %q", use.Verb, use.For, e.Test)
		}
	}
}

// exists reports whether a folder has the test.
func exists(t testing.TB, test string) bool {
	t.Helper()
	root, err := assets.Root()
	if err != nil {
		t.Fatal(err)
	}
	name := path.Ext(test)
	if name == "" {
		return false
	}
	files, err := filepath.Glob(filepath.Join(root, test[:len(test)-len(name)], "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(content, []byte("\nfunc "+name[1:]+"(")) {
			return true
		}
	}
	return false
}
