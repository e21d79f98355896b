package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/kopf-go/kopf/pkg/cli/terminal"
	"github.com/kopf-go/kopf/pkg/inspect"
	"github.com/kopf-go/kopf/pkg/internal/plural"
)

func newPlanCommand(load Load) *cobra.Command {
	var exitCode bool
	var examples int
	command := newQuestion(load, "plan [KIND...] [flags]", "Show what the handlers would do with all objects",
		"Show what an operator with these handlers would do with all objects: the creations, updates, and\n"+
			"deletions that it would handle, and the calls. It needs no running operator, calls no handlers,\n"+
			"and changes nothing. Without --namespace, it looks at all namespaces.",
		"  plan\n  plan kopfexamples -n default --exit-code",
		func(q *question, command *cobra.Command, arguments []string) error {
			if examples < 0 {
				return usageErrorf("--examples is %d: it cannot be negative", examples)
			}
			namespace := q.namespace
			cluster, _, err := q.connect(command.Context())
			if err != nil {
				return err
			}
			cluster.MaxExamples = examples
			line := &terminal.Progress{Out: command.ErrOrStderr(), Quiet: true}
			cluster.Progress = func(resource string, done int) {
				line.Show(fmt.Sprintf("%s: %s", resource, plural.Of(done, "object", "objects")))
			}
			answer, err := cluster.NewPlan(command.Context(), namespace, arguments...)
			line.End()
			if err != nil {
				return err
			}
			if err := q.write(command.OutOrStdout(), answer); err != nil {
				return err
			}
			switch {
			case !exitCode:
				return nil
			case answer.Refuses():
				return &exitError{ExitError, "the operator does not start, as the plan says"}
			case answer.Changes() > 0:
				return &exitError{exitChanges, "objects would be handled"}
			}
			return nil
		})
	describeNamespace(command, "the `namespace` (default: all)")
	command.Flags().BoolVar(&exitCode, "exit-code", false, "exit with 3 if objects would be handled, and with 1 if the operator does not start")
	command.Flags().IntVar(&examples, "examples", inspect.DefaultExamples, "the `number` of objects to name, for each resource")
	return command
}

// exitChanges is the exit code of a plan with changes.
const exitChanges = 3
