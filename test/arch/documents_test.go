package arch

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/kopf-go/kopf/hack/source"
)

var (
	// listing matches a code block or a comment, which contain no links or headings.
	listing = regexp.MustCompile("(?s)```.*?```|<!--.*?-->")
	// code matches code within a line.
	code = regexp.MustCompile("`[^`]*`")
	// link matches a link or an image; the group is the target.
	link = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	// heading matches a heading; the group is the text.
	heading = regexp.MustCompile(`(?m)^#+ +(.*)$`)
	// notInAnchor matches the characters that anchors of headings omit.
	notInAnchor = regexp.MustCompile(`[^\p{L}\p{N}\- _]`)
)

// documents returns all Markdown files, by their paths below the root.
func documents(t *testing.T) map[string]string {
	t.Helper()
	root := root(t)
	found, err := source.Documents(root)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestLinksHaveTargets(t *testing.T) {
	root := root(t)
	all := documents(t)
	exists := func(path string) bool {
		_, err := os.Stat(filepath.Join(root, path))
		return err == nil
	}
	for name := range all {
		for _, target := range broken(name, all, exists) {
			t.Errorf("%s: the target of the link %s does not exist", name, target)
		}
	}
}

// broken returns the links of a document to files or headings that do not exist. It
// does not follow links to other sites.
func broken(name string, all map[string]string, exists func(path string) bool) []string {
	var targets []string
	for _, found := range link.FindAllStringSubmatch(code.ReplaceAllString(listing.ReplaceAllString(all[name], ""), ""), -1) {
		target := found[1]
		if strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") {
			continue
		}
		file, anchor, _ := strings.Cut(target, "#")
		path := name
		if file != "" {
			path = filepath.ToSlash(filepath.Join(filepath.Dir(name), file))
		}
		if !exists(path) || anchor != "" && !anchors(all[path])[anchor] {
			targets = append(targets, target)
		}
	}
	return targets
}

// anchors returns the anchors of the headings of a document.
func anchors(document string) map[string]bool {
	found := map[string]bool{}
	for _, text := range heading.FindAllStringSubmatch(listing.ReplaceAllString(document, ""), -1) {
		anchor := notInAnchor.ReplaceAllString(strings.ToLower(text[1]), "")
		found[strings.ReplaceAll(anchor, " ", "-")] = true
	}
	return found
}

func TestBroken(t *testing.T) {
	tests := map[string]struct {
		text string
		want string
	}{
		"a document in the folder":  {"see [b](b.md)", ""},
		"its heading":               {"see [b](b.md#how-it-stops-c)", ""},
		"a heading here":            {"# Here\n[up](#here)", ""},
		"the parent folder":         {"[root](../README.md)", ""},
		"another site":              {"[there](https://example.com/a#b)", ""},
		"a code block":              {"```go\nx := [1](y)\n```\n", ""},
		"code in a line":            {"`m[1](nowhere)`", ""},
		"a missing document":        {"see [c](c.md)", "c.md"},
		"a missing heading":         {"see [b](b.md#nothing)", "b.md#nothing"},
		"a comment in a code block": {"```sh\n# Here\n```\n[up](#here)", "#here"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			all := map[string]string{"docs/a.md": test.text, "docs/b.md": "# B\n\n## How it stops: `c`\n", "README.md": ""}
			got := broken("docs/a.md", all, func(path string) bool { _, there := all[path]; return there })
			if strings.Join(got, " ") != test.want {
				t.Errorf("got %q", got)
			}
		})
	}
}

func TestIndexListsAllGuides(t *testing.T) {
	all := documents(t)
	const index = "docs/README.md"
	for name := range all {
		guide, found := strings.CutPrefix(name, "docs/")
		if found && name != index && strings.Count(all[index], "]("+guide+")") != 1 {
			t.Errorf("%s must list %s exactly once", index, guide)
		}
	}
}
