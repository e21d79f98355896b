package arch

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

var (
	// quote is a line of the log, or an error, in docs/troubleshooting.md: at the
	// beginning of a paragraph or of a table's line.
	quote = regexp.MustCompile("(?:\\*\\*|\n\\| )`([^`]+)`")
	// seam is where a text goes on in the next line of the source.
	seam = regexp.MustCompile(`"\s*\+\s*"`)
)

// spoken are quotes of what others say.
var spoken = []string{"leader election lost", "connection refused"}

// Who looks for a line of the log in the documentation looks for the very words.
func TestTroubleshootingQuotesTheCode(t *testing.T) {
	said := sources(t)
	quotes := quote.FindAllStringSubmatch(documents(t)["docs/troubleshooting.md"], -1)
	if len(quotes) < 10 {
		t.Errorf("there are only %d quotes", len(quotes))
	}
	for _, found := range quotes {
		text := strings.Join(strings.Fields(found[1]), " ")
		for _, piece := range strings.Split(text, "…") { // for values
			if !strings.Contains(said, strings.TrimSpace(piece)) {
				t.Errorf("the code does not say %q, as in %q", piece, text)
			}
		}
	}
}

// sources are those of the packages, as far as they are executed by users, and what
// the libraries say.
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
