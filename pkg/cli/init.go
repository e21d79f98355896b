package cli

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/kopf-go/kopf/pkg/cli/scaffold"
	"github.com/kopf-go/kopf/pkg/inspect"
	"github.com/kopf-go/kopf/pkg/internal/program"
)

// newInitCommand returns the command that writes the project of a new operator.
func newInitCommand() *cobra.Command {
	var project scaffold.Project
	command := &cobra.Command{
		Use:   "init FOLDER",
		Short: "Write the project of a new operator",
		Long: "Write a project to a new folder: a program with handlers for one kind of objects, the definition\n" +
			"of this kind, a sample, a test, a Dockerfile, a workflow, and a Makefile that runs, tests, and\n" +
			"deploys the operator. The name of the folder becomes that of the operator.",
		Example: "  kopf init greeter\n  kopf init shops --module example.com/shops --group shops.example.com --kind Shop --typed\n" +
			"  kopf init greeter --language python",
		Args: func(_ *cobra.Command, arguments []string) error {
			switch len(arguments) {
			case 0:
				return usageErrorf("no folder is given: use kopf init my-operator")
			case 1:
				return nil
			default:
				return usageErrorf("unexpected argument %q", arguments[1])
			}
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	command.RunE = func(_ *cobra.Command, arguments []string) error {
		dir := arguments[0]
		if err := completeProject(&project, dir); err != nil {
			return err
		}
		paths, err := project.Write(dir)
		if err != nil {
			return err
		}
		command.Printf("The operator %s is in %s:\n  %s\n\nNext:\n  cd %s\n  make test\n  make run\n",
			project.Name, dir, strings.Join(paths, "\n  "), inspect.Quote(dir))
		return nil
	}
	flags := command.Flags()
	flags.SortFlags = false
	flags.StringVar(&project.Module, "module", "", "the `path` of the Go module (default: example.com/ and the name)")
	flags.StringVar(&project.Group, "group", "example.com", "the `group` of the objects: a domain of yours")
	flags.StringVar(&project.Kind, "kind", "Greeting", "the `kind` of the objects")
	flags.StringVar(&project.Language, "language", "go", "the `language` of the handlers: go, "+strings.Join(scaffold.Languages, ", ")+"; those in others than Go are run by kopf serve")
	flags.BoolVar(&project.Typed, "typed", false, "add Go types of the objects, from which controller-gen makes the definition")
	flags.StringVar(&project.Replace, "replace", "", "the `folder` of a clone of "+libraryModule+", which the project uses instead of a released version")
	flags.VisitAll(func(flag *pflag.Flag) { flag.Annotations = map[string][]string{withoutVariable: nil} })
	return command
}

// completeProject adds to a project what its folder and this program say, and returns mistakes of the person.
func completeProject(project *scaffold.Project, dir string) error {
	absolute, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	project.Name = filepath.Base(absolute)
	if project.Language == "go" {
		project.Language = ""
	} else if project.Typed || project.Replace != "" || project.Module != "" {
		return usageErrorf("--typed, --module, and --replace are for projects in Go")
	}
	project.Module = cmp.Or(project.Module, "example.com/"+project.Name)
	if err := project.Validate(); err != nil {
		return &usageError{err}
	}
	switch {
	case project.Language != "":
		project.Version, _ = libraryVersion() // else the latest release
		return nil
	case project.Replace == "":
		project.Version, err = libraryVersion()
		return err
	}
	project.Replace, err = filepath.Abs(project.Replace)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(project.Replace, "go.mod"))
	if err != nil || !strings.HasPrefix(string(text), "module "+libraryModule+"\n") {
		return usageErrorf("--replace is %s, which is not the folder of a clone of %s", project.Replace, libraryModule)
	}
	return nil
}

// libraryModule is the module of this library.
const libraryModule = "github.com/kopf-go/kopf"

// libraryVersion returns the version of this library that the program is a part of, so that a project gets the same.
func libraryVersion() (string, error) {
	version, _ := program.Versions()
	// The version of a build in a clone is missing, is (devel), or ends in +dirty.
	if !strings.HasPrefix(version, "v") || strings.Contains(version, "+") {
		return "", errors.New("this program was built without a version, which the project could require: name a clone of the library by --replace, " +
			fmt.Sprintf("or install a release: go install %s/cmd/kopf@latest", libraryModule))
	}
	return version, nil
}
