package arch

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/kopf-go/kopf/hack/envtest/assets"
)

var (
	// listing is one of code, in which nothing is a link or a heading.
	listing = regexp.MustCompile("(?s)```.*?```")
	// code is some in a line.
	code = regexp.MustCompile("`[^`]*`")
	// link is the target of one, or of an image.
	link = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	// heading is the text of one.
	heading = regexp.MustCompile(`(?m)^#+ +(.*)$`)
	// unspeakable is what does not get into the anchor of a heading.
	unspeakable = regexp.MustCompile(`[^\p{L}\p{N}\- _]`)
)

// documents are all texts of the repository, by their paths below its root.
func documents(t *testing.T) map[string]string {
	t.Helper()
	root, err := assets.Root()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	err = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch hidden := path != root && strings.HasPrefix(entry.Name(), "."); {
		case err != nil:
			return err
		case hidden && entry.IsDir():
			return filepath.SkipDir
		case filepath.Ext(path) != ".md":
			return nil
		}
		content, err := os.ReadFile(path)
		name, _ := filepath.Rel(root, path)
		found[filepath.ToSlash(name)] = string(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestLinksLeadSomewhere(t *testing.T) {
	root, err := assets.Root()
	if err != nil {
		t.Fatal(err)
	}
	all := documents(t)
	exists := func(path string) bool {
		_, err := os.Stat(filepath.Join(root, path))
		return err == nil
	}
	for name := range all {
		for _, target := range broken(name, all, exists) {
			t.Errorf("%s: the link %s leads nowhere", name, target)
		}
	}
}

// broken are the links of a document to what is not there: files, or headings of
// documents. Links to other places are not followed.
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

// anchors are what the headings of a document are linked by.
func anchors(document string) map[string]bool {
	found := map[string]bool{}
	for _, text := range heading.FindAllStringSubmatch(listing.ReplaceAllString(document, ""), -1) {
		anchor := unspeakable.ReplaceAllString(strings.ToLower(text[1]), "")
		found[strings.ReplaceAll(anchor, " ", "-")] = true
	}
	return found
}

func TestBroken(t *testing.T) {
	tests := map[string]struct {
		text string
		want string
	}{
		"a document beside it":       {"see [b](b.md)", ""},
		"a heading of it":            {"see [b](b.md#how-it-stops-c)", ""},
		"a heading of its own":       {"# Here\n[up](#here)", ""},
		"a place of its own":         {"[root](../README.md)", ""},
		"the world":                  {"[there](https://example.com/a#b)", ""},
		"a listing":                  {"```go\nx := [1](y)\n```\n", ""},
		"code in a line":             {"`m[1](nowhere)`", ""},
		"no such document":           {"see [c](c.md)", "c.md"},
		"no such heading":            {"see [b](b.md#nothing)", "b.md#nothing"},
		"a heading that is a remark": {"```sh\n# Here\n```\n[up](#here)", "#here"},
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

func TestTheIndexListsAllGuides(t *testing.T) {
	all := documents(t)
	const index = "docs/README.md"
	for name := range all {
		guide, found := strings.CutPrefix(name, "docs/")
		if found && name != index && strings.Count(all[index], "]("+guide+")") != 1 {
			t.Errorf("%s must list %s, once", index, guide)
		}
	}
}
