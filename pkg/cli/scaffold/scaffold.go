package scaffold

import (
	"bytes"
	"cmp"
	"embed"
	"errors"
	"fmt"
	"go/format"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"text/template"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/kopf-go/kopf/pkg/cli/deployment"
)

// Project is a project to write.
type Project struct {
	// Name is the name of the operator, and of what deploys it.
	Name string
	// Module is the path of the Go module.
	Module string
	// Group and Kind are those of the objects that the operator handles.
	Group string
	Kind  string
	// Language is that of the handlers: one of Languages. It is empty for Go.
	Language string
	// Typed projects have Go types of these objects.
	Typed bool
	// Version is the version of this library that the project requires. Projects in other languages than Go can do
	// without: they use the latest release.
	Version string
	// Replace is a folder with this library, which the project uses instead of a version.
	Replace string
}

// Languages are the languages of handlers besides Go.
var Languages = []string{"python", "node", "shell"}

// Release returns the version of the program kopf in images and workflows.
func (p Project) Release() string { return cmp.Or(p.Version, "latest") }

// Plural returns the plural of the kind, as URLs have it.
func (p Project) Plural() string {
	singular := p.Singular()
	switch {
	case hissing.MatchString(singular):
		return singular + "es"
	case consonantY.MatchString(singular):
		return strings.TrimSuffix(singular, "y") + "ies"
	default:
		return singular + "s"
	}
}

// The ends of English words with another plural than that with an s.
var (
	hissing    = regexp.MustCompile(`(s|x|z|ch|sh)$`)
	consonantY = regexp.MustCompile(`[^aeiou]y$`)
)

// Singular returns the singular of the kind, as kubectl accepts it.
func (p Project) Singular() string { return strings.ToLower(p.Kind) }

var (
	modulePath = regexp.MustCompile(`^[A-Za-z0-9_~-][A-Za-z0-9._~-]*(/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)*$`)
	kindName   = regexp.MustCompile(`^[A-Z][A-Za-z0-9]*$`)
)

// reservedGroups end the names of groups that an API server accepts only with the approval of Kubernetes.
var reservedGroups = []string{".k8s.io", ".kubernetes.io"}

// Validate returns the first mistake in the names of the project.
func (p Project) Validate() error {
	if err := deployment.CheckName(p.Name); err != nil {
		return fmt.Errorf("the name of the folder becomes that of the operator: %w", err)
	}
	if p.Language != "" && !slices.Contains(Languages, p.Language) {
		return fmt.Errorf("there is no project in the language %q: use go, or one of %s", p.Language, strings.Join(Languages, ", "))
	}
	if p.Language == "" && !modulePath.MatchString(p.Module) {
		return fmt.Errorf("the module %q is not a path of a Go module, such as example.com/%s", p.Module, p.Name)
	}
	if faults := validation.IsDNS1123Subdomain(p.Group); len(faults) > 0 {
		return fmt.Errorf("the group %q is not a domain, such as example.com: %s", p.Group, faults[0])
	}
	if !strings.Contains(p.Group, ".") {
		return fmt.Errorf("the group %q has no dot: use a domain of yours, such as %s.example.com", p.Group, p.Group)
	}
	for _, end := range reservedGroups {
		if strings.HasSuffix("."+p.Group, end) {
			return fmt.Errorf("the group %q belongs to Kubernetes: use a domain of yours, such as example.com", p.Group)
		}
	}
	if !kindName.MatchString(p.Kind) {
		return fmt.Errorf("the kind %q is not a word such as Greeting: it begins with a capital letter, and has only letters and digits", p.Kind)
	}
	if strings.HasSuffix(p.Kind, "List") {
		return fmt.Errorf("the kind %q ends in List, as the kinds of lists do: use another one", p.Kind)
	}
	if faults := validation.IsDNS1035Label(p.Plural()); len(faults) > 0 {
		return fmt.Errorf("the plural of the kind, %q, is not a name of a resource: %s", p.Plural(), faults[0])
	}
	return nil
}

//go:generate cp ../../../examples/languages/python/kopf.py templates/language/python/kopf.py

//go:embed all:templates
var templates embed.FS

// file is a file of a project.
type file struct {
	path string // with slashes, below the folder of the project
	text []byte
}

// Write writes the project to a folder, which does not exist or is empty, and returns the paths of the files in it.
func (p Project) Write(dir string) ([]string, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	files, err := p.files()
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("the project cannot be written: %w", err)
	}
	if len(entries) > 0 {
		return nil, fmt.Errorf("the folder %s is not empty, and nothing in it is overwritten: name a new folder", dir)
	}
	var paths []string
	for _, one := range files {
		if err := create(filepath.Join(dir, filepath.FromSlash(one.path)), one.text); err != nil {
			return nil, err
		}
		paths = append(paths, one.path)
	}
	return paths, nil
}

// create creates a file, which must not exist, and its folder.
func create(path string, text []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // sources are no secrets
		return err
	}
	created, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644) //nolint:gosec // as above
	if err != nil {
		return err
	}
	_, err = created.Write(text)
	return errors.Join(err, created.Close())
}

// files returns the files of the project, sorted by their paths.
func (p Project) files() ([]file, error) {
	folders := []string{"all", "untyped"}
	switch {
	case p.Language != "":
		folders = []string{"language/all", "language/" + p.Language}
	case p.Typed:
		folders = []string{"all", "typed"}
	}
	var files []file
	for _, folder := range folders {
		root, err := fs.Sub(templates, "templates/"+folder)
		if err != nil {
			return nil, err
		}
		err = fs.WalkDir(root, ".", func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			one, err := p.render(root, path)
			files = append(files, one)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	slices.SortFunc(files, func(a, b file) int { return strings.Compare(a.path, b.path) })
	return files, nil
}

// render returns the file that a template makes.
func (p Project) render(root fs.FS, path string) (file, error) {
	source, err := fs.ReadFile(root, path)
	if err != nil || !strings.HasSuffix(path, ".tmpl") {
		return file{path, source}, err
	}
	parsed, err := template.New(path).Parse(string(source))
	if err != nil {
		return file{}, err
	}
	var text bytes.Buffer
	if err := parsed.Execute(&text, p); err != nil {
		return file{}, err
	}
	rendered := file{
		path: strings.NewReplacer("PLURAL", p.Plural(), "SINGULAR", p.Singular()).Replace(strings.TrimSuffix(path, ".tmpl")),
		text: text.Bytes(),
	}
	if strings.HasSuffix(rendered.path, ".go") {
		rendered.text, err = format.Source(rendered.text)
	}
	return rendered, err
}
