// Package site builds the documentation site and checks its pages: that every link has
// its target, and that no guide is missing. The module browser below it looks at the site
// with a browser.
package site

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kopf-go/kopf/hack/envtest/assets"
	"github.com/kopf-go/kopf/hack/source"
)

// forge is the address of the repository.
const forge = "https://github.com/kopf-go/kopf/"

func TestSite(t *testing.T) {
	root, err := assets.Root()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := source.Documents(root); err != nil { // reads them, too
		t.Fatal(err)
	}
	if err := source.Inputs(filepath.Join(root, "hack", "site"), filepath.Join(root, "hack", "tools", "hugo"), filepath.Join(root, "docs")); err != nil {
		t.Fatal(err)
	}
	out := t.TempDir()
	build := exec.CommandContext(t.Context(), "go", "run", "./hack/site", "-out", out)
	build.Dir = root
	if text, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	site := load(t, out)
	t.Run("every link has a target", func(t *testing.T) {
		links := 0
		for name, one := range site.pages {
			links += len(one.links)
			for _, link := range one.links {
				if err := site.check(root, name, link); err != nil {
					t.Errorf("%s: %s: %v", name, link, err)
				}
			}
		}
		if links < 3000 {
			t.Errorf("found only %d links", links)
		}
	})
	t.Run("every guide has a page", func(t *testing.T) {
		guides, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
		if err != nil || len(guides) < 40 {
			t.Fatalf("found %d guides: %v", len(guides), err)
		}
		for _, guide := range guides {
			name := "main/docs/" + strings.TrimSuffix(strings.Replace(filepath.Base(guide), "README", "index", 1), ".md") + ".html"
			if _, found := site.pages[name]; !found {
				t.Errorf("%s does not exist", name)
			}
		}
	})
	t.Run("every diagram is drawn", func(t *testing.T) {
		shown := 0
		for name, one := range site.pages {
			shown += bytes.Count(one.text, []byte(`class="diagram"`))
			if bytes.Contains(one.text, []byte(`class="undrawn"`)) {
				t.Errorf("%s has a diagram that is not drawn: run make diagrams", name)
			}
		}
		stored, err := filepath.Glob(filepath.Join(root, "hack", "site", "theme", "assets", "diagrams", "*.svg"))
		if err != nil || shown == 0 || len(stored) != shown {
			t.Errorf("the pages show %d diagrams, but there are %d: run make diagrams (%v)", shown, len(stored), err)
		}
	})
	t.Run("the search knows every page", func(t *testing.T) {
		site.checkSearch(t)
	})
	t.Run("nothing is loaded from elsewhere", func(t *testing.T) {
		for name, one := range site.pages {
			for _, loaded := range one.loaded {
				if strings.Contains(loaded, "//") {
					t.Errorf("%s loads %s", name, loaded)
				}
			}
		}
	})
}

// site is a built site.
type site struct {
	dir   string
	pages map[string]document
}

// document is what a page contains.
type document struct {
	text   []byte
	ids    map[string]bool
	links  []string // to pages and files
	loaded []string // scripts, style sheets, and images
}

func load(t *testing.T, dir string) site {
	t.Helper()
	found := site{dir, map[string]document{}}
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, _ fs.DirEntry, err error) error {
		if err != nil || path.Ext(name) != ".html" {
			return err
		}
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return err
		}
		found.pages[name], err = parse(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// parse reads a page. Its HTML is also nearly XML.
func parse(text []byte) (document, error) {
	one := document{text: text, ids: map[string]bool{}}
	decoder := xml.NewDecoder(bytes.NewReader(text))
	decoder.Strict, decoder.AutoClose, decoder.Entity = false, xml.HTMLAutoClose, xml.HTMLEntity
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return one, nil
		}
		if err != nil {
			return one, err
		}
		start, isStart := token.(xml.StartElement)
		if !isStart {
			continue
		}
		for _, attribute := range start.Attr {
			switch name := attribute.Name.Local; {
			case name == "id":
				one.ids[attribute.Value] = true
			case name == "href" && start.Name.Local == "a":
				one.links = append(one.links, attribute.Value)
			case name == "src", name == "href" && start.Name.Local == "link":
				one.links = append(one.links, attribute.Value)
				one.loaded = append(one.loaded, attribute.Value)
			}
		}
	}
}

// check returns an error if a link of a page leads nowhere: to a page, section, or file
// that does not exist, here or in the repository. It does not follow links to others.
func (s site) check(root, name, link string) error {
	if file, ours := strings.CutPrefix(link, forge); ours {
		action, file, _ := strings.Cut(file, "/main/")
		if !slices.Contains([]string{"blob", "edit"}, action) {
			return nil // an issue, or a page of the forge
		}
		file, _, _ = strings.Cut(file, "#")
		_, err := os.Stat(filepath.Join(root, file))
		return err
	}
	to, err := url.Parse(link)
	if err != nil || to.Host != "" || to.Scheme == "mailto" {
		return err
	}
	target := name
	if to.Path != "" {
		target = path.Join(path.Dir(name), to.Path)
	}
	if path.Ext(target) != ".html" {
		_, err := os.Stat(filepath.Join(s.dir, target))
		return err
	}
	page, found := s.pages[target]
	switch {
	case !found:
		return fmt.Errorf("there is no page %s", target)
	case to.Fragment != "" && !page.ids[to.Fragment]:
		return fmt.Errorf("%s has no section %s", target, to.Fragment)
	}
	return nil
}

// checkSearch compares the texts of the search with the pages.
func (s site) checkSearch(t *testing.T) {
	t.Helper()
	script, err := os.ReadFile(filepath.Join(s.dir, "main", "search-index.js"))
	if err != nil {
		t.Fatal(err)
	}
	var sections []struct{ Address, Page, Heading, Text string }
	text := strings.TrimSuffix(strings.TrimPrefix(string(script), "window.searchIndex = "), ";\n")
	if err := json.Unmarshal([]byte(text), &sections); err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, one := range sections {
		name, _, _ := strings.Cut(one.Address, "#")
		known["main/"+name] = true
		if err := s.check("", "main/index.html", one.Address); err != nil || one.Page == "" || one.Heading == "" {
			t.Errorf("%+v: %v", one, err)
		}
	}
	for name := range s.pages {
		if name != "index.html" && !known[name] {
			t.Errorf("the search does not know %s", name)
		}
	}
}

func TestParse(t *testing.T) {
	got, err := parse([]byte(`<!doctype html><p id=a>one<br>&nbsp;two<img src="i.svg"><a href="b.html#c">b</a><link href="s.css"></p>`))
	if err != nil || !got.ids["a"] || !slices.Equal(got.links, []string{"i.svg", "b.html#c", "s.css"}) || !slices.Equal(got.loaded, []string{"i.svg", "s.css"}) {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestCheck(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "s.css"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	one := site{dir, map[string]document{"a/b.html": {ids: map[string]bool{"c": true}}, "a/d.html": {}}}
	tests := map[string]bool{
		"#c": true, "#x": false, "d.html": true, "b.html#c": true, "d.html#c": false, "../s.css": true, "s.css": false, "x.html": false,
		"https://example.com/x": true, forge + "blob/main/s.css": true, forge + "blob/main/x.go": false, forge: true,
	}
	for link, want := range tests {
		if err := one.check(dir, "a/b.html", link); (err == nil) != want {
			t.Errorf("%s: %v", link, err)
		}
	}
}
