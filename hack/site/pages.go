package main

import (
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
)

// The pages with a special place.
const (
	home  = "README.md"
	index = "docs/README.md" // its tables are the navigation
)

// page is a Markdown file that becomes a page of the site.
type page struct {
	path  string // below the root of the repository
	title string
	text  string
}

// url returns the address of the page below the folder of the version.
func (p page) url() string {
	name := strings.ToLower(strings.TrimSuffix(p.path, ".md"))
	return strings.TrimSuffix(name, "readme") + map[bool]string{true: "index"}[path.Base(name) == "readme"] + ".html"
}

// toRoot returns the relative path from the page to the folder of the version.
func (p page) toRoot() string { return strings.Repeat("../", strings.Count(p.path, "/")) }

var (
	// fenced matches what contains no links or headings.
	fenced = regexp.MustCompile("(?s)```.*?```|<!--.*?-->|`[^`\n]*`")
	// linked matches links to Markdown files; the group is the path.
	linked = regexp.MustCompile(`\]\(([^)\s:#]+\.md)(?:#[^)\s]*)?\)`)
	// titled matches the title of a page.
	titled = regexp.MustCompile(`(?m)^# +(.+)$`)
	// section and row match the groups of the navigation and their pages.
	section = regexp.MustCompile(`(?m)^## +(.+)$`)
	row     = regexp.MustCompile(`(?m)^\| *\[([^\]]+)\]\(([^)\s:]+\.md)\) *\|`)
)

// collect returns the landing page, the guides, and every page of the repository that
// they link to, sorted by their paths.
func collect(files fs.FS) ([]page, error) {
	waiting, err := fs.Glob(files, "docs/*.md")
	if err != nil {
		return nil, err
	}
	waiting = append(waiting, home)
	found := map[string]page{}
	for len(waiting) > 0 {
		name := waiting[0]
		waiting = waiting[1:]
		if _, known := found[name]; known {
			continue
		}
		one, err := read(files, name)
		if err != nil {
			return nil, err
		}
		found[name] = one
		for _, link := range linked.FindAllStringSubmatch(fenced.ReplaceAllString(one.text, ""), -1) {
			waiting = append(waiting, path.Join(path.Dir(name), link[1]))
		}
	}
	var pages []page
	for _, one := range found {
		pages = append(pages, one)
	}
	slices.SortFunc(pages, func(a, b page) int { return strings.Compare(a.path, b.path) })
	return pages, nil
}

func read(files fs.FS, name string) (page, error) {
	text, err := fs.ReadFile(files, name)
	if err != nil {
		return page{}, err
	}
	title := titled.FindSubmatch(text)
	if title == nil {
		return page{}, fmt.Errorf("%s has no title", name)
	}
	return page{path: name, title: strings.ReplaceAll(string(title[1]), "`", ""), text: string(text)}, nil
}

// group is a part of the navigation.
type group struct {
	Title string `json:"title"`
	Pages []item `json:"pages"`
}

type item struct {
	Title string `json:"title"`
	Path  string `json:"path"`
}

// navigation returns the sections of the index with the pages that their tables list.
func navigation(pages []page) []group {
	var groups []group
	for _, one := range pages {
		if one.path != index {
			continue
		}
		starts := section.FindAllStringSubmatchIndex(one.text, -1)
		for i, at := range starts {
			end := len(one.text)
			if i+1 < len(starts) {
				end = starts[i+1][0]
			}
			group := group{Title: one.text[at[2]:at[3]]}
			for _, found := range row.FindAllStringSubmatch(one.text[at[1]:end], -1) {
				group.Pages = append(group.Pages, item{found[1], path.Join(path.Dir(index), found[2])})
			}
			if len(group.Pages) > 0 {
				groups = append(groups, group)
			}
		}
	}
	return groups
}
