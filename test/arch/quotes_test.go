package arch

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

var (
	// quote matches a log line or an error in docs/troubleshooting.md, at the beginning
	// of a paragraph or of a table row.
	quote = regexp.MustCompile("(?:\\*\\*|\n\\| )`([^`]+)`")
	// seam matches the joint of two string literals.
	seam = regexp.MustCompile(`"\s*\+\s*"`)
)

// spoken lists messages of other libraries.
var spoken = []string{"leader election lost", "connection refused"}

// Users search the documentation for the exact words of the log.
func TestTroubleshootingQuotesTheCode(t *testing.T) {
	said := sources(t)
	quotes := quote.FindAllStringSubmatch(documents(t)["docs/troubleshooting.md"], -1)
	if len(quotes) < 10 {
		t.Errorf("found only %d quotes", len(quotes))
	}
	for _, found := range quotes {
		text := strings.Join(strings.Fields(found[1]), " ")
		for _, piece := range strings.Split(text, "…") { // for values
			if !strings.Contains(said, strings.TrimSpace(piece)) {
				t.Errorf("the code does not contain %q of %q", piece, text)
			}
		}
	}
}

// sources returns the sources of all packages under pkg, without tests, and the
// messages of other libraries.
func sources(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	for _, pkg := range list(t) {
		if !strings.HasPrefix(pkg.ImportPath, module+"pkg/") {
			continue
		}
		for _, path := range pkg.files() {
			content, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.HasSuffix(path, "_test.go") {
				all.Write(content)
			}
		}
	}
	return seam.ReplaceAllString(strings.ReplaceAll(all.String(), `\"`, `"`), "") + strings.Join(spoken, "\n")
}
