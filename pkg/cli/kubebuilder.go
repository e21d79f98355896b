package cli

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/kopf-go/kopf/pkg/cli/kubebuilder"
	"github.com/kopf-go/kopf/pkg/inspect"
)

// newKubebuilderCommand returns the command that installs the plugin of kubebuilder, and is that plugin.
func newKubebuilderCommand() *cobra.Command {
	answer := false
	command := &cobra.Command{
		Use:   "kubebuilder",
		Short: "Install the plugin of kubebuilder for projects with handlers",
		Long: "Install a plugin of kubebuilder, which executes this program. Its projects have handlers in place of\n" +
			"reconcilers, in internal/handlers: with their markers for roles, and with tests.",
		Example: "  kopf kubebuilder\n  kubebuilder init --plugins go/v4,kopf/v1 --domain example.com --repo example.com/shop\n" +
			"  kubebuilder create api --group shop --version v1 --kind Order --resource --controller=false",
		Args:              rejectArguments,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	command.RunE = func(command *cobra.Command, _ []string) error {
		if answer {
			return kubebuilder.Answer(command.InOrStdin(), command.OutOrStdout())
		}
		program, err := os.Executable()
		if err != nil {
			return fmt.Errorf("the path of this program is unknown: %w", err)
		}
		path, err := kubebuilder.Install(inspect.Quote(program, "kubebuilder", "--answer"))
		if err != nil {
			return err
		}
		command.Printf("The plugin %s/v1 is %s.\n\nNext, in a new folder:\n  kubebuilder init --plugins go/v4,kopf/v1 --domain example.com --repo example.com/shop\n", kubebuilder.Name, path)
		return nil
	}
	flags := command.Flags()
	flags.BoolVar(&answer, "answer", false, "answer a request of kubebuilder on standard input")
	flags.VisitAll(func(flag *pflag.Flag) { flag.Annotations = map[string][]string{withoutVariable: nil} })
	return command
}
