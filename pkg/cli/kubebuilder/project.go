package kubebuilder

import (
	"bytes"
	"cmp"
	"embed"
	"errors"
	"fmt"
	"go/format"
	"io"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"text/template"

	"github.com/spf13/pflag"

	"github.com/kopf-go/kopf/pkg/cli/scaffold"
)

// library is the module of this library.
const library = "github.com/kopf-go/kopf"

// The files that the plugin changes, and its folder.
const (
	mainFile     = "cmd/main.go"
	moduleFile   = "go.mod"
	folder       = "internal/handlers"
	registryFile = folder + "/handlers.go"
)

// The lines before which code is inserted. The first two are of kubebuilder.
const (
	importsMarker  = "// +kubebuilder:scaffold:imports"
	builderMarker  = "// +kubebuilder:scaffold:builder"
	handlersMarker = "// +kopf:scaffold:handlers"
)

//go:embed templates
var templates embed.FS

// project is a project with its changes.
type project struct {
	*request

	changed map[string]string
}

// file returns a file with its changes.
func (p *project) file(name string) (text string, exists bool) {
	if text, exists = p.changed[name]; exists {
		return text, true
	}
	text, exists = p.Universe[name]
	return text, exists
}

// wire lets the manager run handlers, unless it does already.
func (p *project) wire() error {
	manager, exists := p.file(mainFile)
	if !exists {
		return fmt.Errorf("there is no %s: use this plugin together with go/v4, which writes it", mainFile)
	}
	if _, exists := p.file(registryFile); !exists {
		if err := p.add(registryFile, "handlers.go.tmpl", nil); err != nil {
			return err
		}
	}
	if err := p.replace(); err != nil {
		return err
	}
	if strings.Contains(manager, "kopf.Add(") {
		return nil
	}
	imports := fmt.Sprintf("%q\n\t%q\n", library+"/pkg/kopf", path.Join(p.Config.Repo, folder))
	return p.insert(mainFile, map[string]string{importsMarker: imports, builderMarker: `settings := kopf.Settings{Name: ` + strconv.Quote(p.Config.ProjectName) + `}
	settings.Peering.Standalone = true // the leader election of the manager is enough
	if _, err := kopf.Add(mgr, kopf.Options{Registry: handlers.New(), Settings: settings}); err != nil {
		setupLog.Error(err, "Failed to add the handlers")
		os.Exit(1)
	}

`})
}

// replace lets the project use the library of a folder, if that is asked. Otherwise, go mod tidy, which kubebuilder runs,
// requires the latest release.
func (p *project) replace() error {
	var dir string
	flags := ignoring()
	flags.StringVar(&dir, replaceFlag, "", "")
	if err := flags.Parse(p.Args); err != nil || dir == "" {
		return err
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	module, exists := p.file(moduleFile)
	if !exists {
		return fmt.Errorf("there is no %s: use this plugin together with go/v4, which writes it", moduleFile)
	}
	if !strings.Contains(module, "\nreplace "+library+" ") {
		p.changed[moduleFile] = module + "\nreplace " + library + " => " + dir + "\n"
	}
	return nil
}

// ignoring returns flags, which ignore those of other plugins.
func ignoring() *pflag.FlagSet {
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	flags.ParseErrorsAllowlist.UnknownFlags = true
	flags.SetOutput(io.Discard)
	return flags
}

// kind is a kind of objects, as templates use it.
type kind struct {
	Kind       string
	Group      string // shop.example.com
	Plural     string // orders
	Alias      string // shopv1
	Import     string // the package of its types
	Namespaced bool
}

// addKind adds the handlers of the kind of the request, and their test. Files that exist stay as they are.
func (p *project) addKind() error {
	k, err := p.kind()
	if err != nil {
		return err
	}
	base := path.Join(folder, strings.ToLower(k.Kind))
	if _, exists := p.file(base + "_handlers.go"); exists {
		return nil // such as for another version
	}
	if err := p.insert(registryFile, map[string]string{handlersMarker: "add" + k.Kind + "(registry)\n"}); err != nil {
		return err
	}
	if err := p.add(base+"_handlers.go", "kind_handlers.go.tmpl", k); err != nil {
		return err
	}
	return p.add(base+"_handlers_test.go", "kind_handlers_test.go.tmpl", k)
}

// kind returns the kind of the request.
func (p *project) kind() (*kind, error) {
	var group, version, name, plural string
	flags := ignoring()
	flags.StringVar(&group, "group", "", "")
	flags.StringVar(&version, "version", "", "")
	flags.StringVar(&name, "kind", "", "")
	flags.StringVar(&plural, "plural", "", "")
	namespaced := flags.Bool("namespaced", true, "")
	if err := flags.Parse(p.Args); err != nil {
		return nil, err
	}
	if name == "" || version == "" {
		return nil, errors.New("no kind is given: use --group, --version, and --kind")
	}
	types := path.Join(p.Config.Repo, "api", version)
	if p.Config.MultiGroup && group != "" {
		types = path.Join(p.Config.Repo, "api", group, version)
	}
	return &kind{
		Kind: name, Namespaced: *namespaced, Group: strings.Trim(group+"."+p.Config.Domain, "."),
		Plural: cmp.Or(plural, scaffold.Project{Kind: name}.Plural()),
		Alias:  strings.NewReplacer("-", "", ".", "").Replace(strings.ToLower(group + version)),
		Import: types,
	}, nil
}

// add adds a file that a template makes.
func (p *project) add(name, from string, value any) error {
	parsed, err := template.ParseFS(templates, "templates/"+from)
	if err != nil {
		return err
	}
	var text bytes.Buffer
	if err := parsed.Execute(&text, value); err != nil {
		return err
	}
	formatted, err := format.Source(text.Bytes())
	p.changed[name] = string(formatted)
	return err
}

// insert inserts code before lines of a file.
func (p *project) insert(name string, code map[string]string) error {
	text, _ := p.file(name)
	for marker, inserted := range code {
		before, after, found := strings.Cut(text, marker)
		if !found {
			return fmt.Errorf("%s has no line %q, before which this belongs:\n%s", name, marker, inserted)
		}
		text = before + inserted + marker + after
	}
	formatted, err := format.Source([]byte(text))
	if err != nil {
		return fmt.Errorf("%s cannot be changed: %w", name, err)
	}
	p.changed[name] = string(formatted)
	return nil
}
