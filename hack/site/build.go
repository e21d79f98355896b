package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// theme is the folder with the layouts and assets of the site.
const theme = "hack/site/theme"

// build renders one version into a folder.
func build(ctx context.Context, root, version, out string) (err error) {
	stage, err := os.MkdirTemp("", "site")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(stage)) }()
	files, err := filesOf(ctx, root, version)
	if err != nil {
		return err
	}
	if err := prepare(files, version, stage); err != nil {
		return err
	}
	for file, style := range map[string]string{"code.css": "github", "code-dark.css": "github-dark"} {
		text, err := hugo(ctx, root, "gen", "chromastyles", "--style="+style).Output()
		if err := errors.Join(err, write(stage, "assets/"+file, string(text))); err != nil {
			return err
		}
	}
	cmd := hugo(ctx, root, "--source="+stage, "--destination="+out, "--themesDir="+filepath.Join(root, filepath.Dir(theme)),
		"--theme="+filepath.Base(theme), "--noBuildLock", "--cleanDestinationDir")
	text, err := cmd.CombinedOutput()
	if warnings := complaint.FindAllString(string(text), -1); err != nil || len(warnings) > 0 {
		return fmt.Errorf("%w\n%s", cmp.Or(err, errors.New("the generator has warnings")), cmp.Or(strings.Join(warnings, "\n"), string(text)))
	}
	return nil
}

// complaint matches what the generator reports. It returns success for warnings.
var complaint = regexp.MustCompile(`(?m)^(?:WARN|ERROR|Error:).*$`)

// hugo returns a command of the generator, which is built on first use.
func hugo(ctx context.Context, root string, args ...string) *exec.Cmd {
	cmd := command(ctx, root, "go", append([]string{"tool", "-modfile=hack/tools/hugo/go.mod", "hugo"}, args...)...)
	cmd.Stdout, cmd.Stderr = nil, nil
	return cmd
}

// prepare writes the sources of the site as Hugo expects them: configuration, pages with
// front matter, navigation, and images.
func prepare(files fs.FS, version, stage string) error {
	pages, err := collect(files)
	if err != nil {
		return err
	}
	addresses := map[string]string{}
	for _, one := range pages {
		addresses[one.path] = one.url()
		if folder, found := strings.CutSuffix(one.path, "/"+home); found {
			addresses[folder] = one.url() // as on the forge, which shows it with the folder
		}
		if err := write(stage, "content/"+contentName(one.path), front(one)+one.text); err != nil {
			return err
		}
	}
	config := strings.ReplaceAll(configuration, "VERSION", version)
	return errors.Join(
		write(stage, "hugo.toml", config),
		writeJSON(stage, "data/navigation.json", navigation(pages)),
		writeJSON(stage, "data/addresses.json", addresses),
		copyImages(files, filepath.Join(stage, "static", "docs", "images")),
	)
}

// contentName returns the name of a page for Hugo. All pages are in one folder, so that
// Hugo makes no pages of folders; their addresses are in their front matter.
func contentName(name string) string {
	if name == home {
		return "_index.md"
	}
	return strings.ReplaceAll(name, "/", "--")
}

// front returns the front matter of a page.
func front(p page) string {
	return fmt.Sprintf("---\ntitle: %q\nurl: %q\npath: %q\nroot: %q\n---\n", p.title, "/"+p.url(), p.path, p.toRoot())
}

// configuration is that of Hugo. The anchors of headings are those of the forge.
const configuration = `baseURL = "/"
locale = "en-us"
title = "Kopf's handlers for Go"
disableKinds = ["section", "taxonomy", "term", "rss", "sitemap", "404"]
[params]
version = "VERSION"
forge = "https://github.com/kopf-go/kopf"
[markup.goldmark.parser]
autoHeadingIDType = "github"
[markup.goldmark.extensions]
typographer = {disable = true}
[markup.highlight]
noClasses = false
[outputFormats.search]
mediaType = "text/javascript"
baseName = "search-index"
isPlainText = true
notAlternative = true
[outputs]
home = ["html", "search"]
`

func writeJSON(dir, name string, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return write(dir, name, string(text))
}

func write(dir, name, text string) error {
	file := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil { //nolint:gosec // public
		return err
	}
	return os.WriteFile(file, []byte(text), 0o644) //nolint:gosec // public
}

func copyImages(files fs.FS, to string) error {
	images, err := fs.Sub(files, "docs/images")
	if err != nil {
		return err
	}
	if _, err := fs.Stat(images, "."); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return os.CopyFS(to, images)
}
