package main

import (
	"archive/zip"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/version"
)

// development is the version of the work tree.
const development = "main"

// released matches the tags that are versions of the library.
var released = regexp.MustCompile(`^v\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?$`)

// selectVersions returns the versions with the names.
func selectVersions(ctx context.Context, root, names string) ([]string, error) {
	text, err := git(ctx, root, "tag", "--list", "v*")
	if err != nil {
		return nil, err
	}
	tags := slices.DeleteFunc(strings.Fields(text), func(tag string) bool { return !released.MatchString(tag) })
	if names == "all" {
		return append(tags, development), nil
	}
	selected := strings.Split(names, ",")
	for _, name := range selected {
		if name != development && !slices.Contains(tags, name) {
			return nil, fmt.Errorf("there is no version %q: use %s for the files of the work tree, a tag such as v1.2.3, or all", name, development)
		}
	}
	return selected, nil
}

// filesOf returns the files of a version: those of the work tree, or of a tag.
func filesOf(ctx context.Context, root, name string) (fs.FS, error) {
	if name == development {
		return os.DirFS(root), nil
	}
	archive, err := git(ctx, root, "archive", "--format=zip", name)
	if err != nil {
		return nil, err
	}
	return zip.NewReader(strings.NewReader(archive), int64(len(archive)))
}

func git(ctx context.Context, root string, args ...string) (string, error) {
	cmd := command(ctx, root, "git", args...)
	cmd.Stdout = nil
	text, err := cmd.Output()
	return string(text), err
}

// command returns a command whose output people see.
func command(ctx context.Context, dir, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, os.Stderr, os.Stderr
	return cmd
}

// listed is a version as the menu of the site needs it.
type listed struct {
	Name  string   `json:"name"`
	Pages []string `json:"pages"` // below the folder of the version
}

// writeVersions writes the list of the versions in the folder of the site, and a start
// page that leads to the newest release, or to the version of the work tree.
func writeVersions(out string) error {
	var found []listed
	entries, err := os.ReadDir(out)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if name := entry.Name(); entry.IsDir() && (name == development || released.MatchString(name)) {
			one := listed{Name: name}
			if one.Pages, err = pagesOf(filepath.Join(out, name)); err != nil {
				return err
			}
			found = append(found, one)
		}
	}
	slices.SortFunc(found, func(a, b listed) int { return compareVersions(b.Name, a.Name) })
	text, err := json.Marshal(found)
	if err != nil {
		return err
	}
	script := fmt.Sprintf("window.siteVersions = %s;\n", text)
	if err := os.WriteFile(filepath.Join(out, "versions.js"), []byte(script), 0o644); err != nil { //nolint:gosec // public
		return err
	}
	return os.WriteFile(filepath.Join(out, "index.html"), []byte(fmt.Sprintf(redirect, newest(found))), 0o644) //nolint:gosec // public
}

// redirect leads to the folder of a version. It works from a disk, too.
const redirect = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>Documentation</title>
<meta http-equiv="refresh" content="0; url=%[1]s/index.html">
<a href="%[1]s/index.html">Documentation</a>
</html>
`

// newest returns the newest final release, or else the first version. The versions are
// sorted, with the newest first.
func newest(sorted []listed) string {
	for _, one := range sorted {
		if released.MatchString(one.Name) && !strings.Contains(one.Name, "-") {
			return one.Name
		}
	}
	return sorted[0].Name
}

// compareVersions orders versions by their numbers. The version of the work tree is the
// last one.
func compareVersions(a, b string) int {
	switch {
	case a == b:
		return 0
	case a == development:
		return 1
	case b == development:
		return -1
	}
	order, err := version.MustParseSemantic(a).Compare(b)
	if err != nil {
		return strings.Compare(a, b)
	}
	return order
}

func pagesOf(dir string) ([]string, error) {
	var found []string
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if filepath.Ext(path) == ".html" {
			name, _ := filepath.Rel(dir, path)
			found = append(found, filepath.ToSlash(name))
		}
		return err
	})
	return found, err
}
