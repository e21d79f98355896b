package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"

	"github.com/kopf-go/kopf/pkg/cli/launch"
)

// The exit codes.
const (
	ExitOK    = 0
	ExitError = 1 // the operator could not start or could not continue
	ExitUsage = 2 // the command line or an environment variable is invalid
)

// Main runs an operator as a program, with the arguments and the environment of the
// process, until it is interrupted. The first signal stops the operator gracefully; another
// one, a second or more later, ends the process at once. Main returns the exit code.
//
// If the first argument is one of Commands, it runs that command instead.
func Main(run func(context.Context, Invocation) error, load Load) int {
	command := newOperatorCommand(filepath.Base(os.Args[0]), run)
	addCommands(command, load)
	return runProcess(command)
}

// addCommands adds the commands about an operator to its own.
func addCommands(operator *cobra.Command, load Load) {
	operator.AddCommand(Commands(load)...)
	operator.AddCommand(newOperatorVersionCommand(operator.Name()))
	operator.Args = rejectUnknownCommand
	operator.Annotations = map[string]string{runsAnnotation: ""}
	operator.CompletionOptions = cobra.CompletionOptions{}
}

// StartCluster starts a control plane on this machine with the resource definitions in files and
// folders, and writes its progress to log.
type StartCluster = launch.StartCluster

// Cluster is a control plane that a StartCluster has started: the path of its kubeconfig file, and
// the function that stops it.
type Cluster = launch.Cluster

// KopfMain runs the command kopf and returns the exit code. The function starts the control
// plane of kopf run --with-cluster, and serving runs files of handlers. They are given, because the programs of
// operators need neither.
func KopfMain(start StartCluster, serving Serving) int {
	return runProcess(newKopfCommand(start, serving))
}

// repeatedSignalWindow is the time in which a second signal counts as the same one.
const repeatedSignalWindow = time.Second

// runProcess runs a command with the arguments of the process.
func runProcess(command *cobra.Command) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// After the first signal, the next one has its default effect, which ends the process. A
	// signal right after the first one is ignored: some tools send it to a process and to its
	// group.
	context.AfterFunc(ctx, func() { time.AfterFunc(repeatedSignalWindow, stop) })
	// kubectl completes the arguments of a plugin kubectl-NAME by the program kubectl_complete-NAME, with
	// the words of the command line: a link of that name is enough.
	arguments := os.Args[1:]
	if strings.HasPrefix(filepath.Base(os.Args[0]), "kubectl_complete-") {
		arguments = append([]string{cobra.ShellCompRequestCmd}, arguments...)
	}
	command.SetArgs(arguments)
	return execute(ctx, command, os.Stdout, os.Stderr)
}

// execute runs a command. It writes the requested output to out, and the log and all
// errors to log.
func execute(ctx context.Context, command *cobra.Command, out, log io.Writer) int {
	command.SetOut(out)
	command.SetErr(log)
	prepareCommand(command)
	called, err := command.ExecuteContextC(ctx)
	var logged *loggedError
	code := ExitCode(err)
	var ended *exitError
	switch {
	case err == nil, ctx.Err() != nil && errors.Is(err, context.Canceled): // interrupted before the operator started
		return ExitOK
	case errors.As(err, &logged):
		logged.logger.Error(withAdvice(logged.error), "The operator has ended.")
	case errors.As(err, &ended): // it was reported
	case code == ExitUsage:
		_, _ = fmt.Fprintf(log, "%s: %v\nTry %s --help.\n", programOf(command), err, calledAs(called))
	default:
		_, _ = fmt.Fprintf(log, "%s: %v\n", programOf(command), withAdvice(err))
	}
	return code
}

// programOf returns the program that errors name: if kopf has built this one, the person has called
// kopf, and does not know its name.
func programOf(root *cobra.Command) string {
	if os.Getenv(launch.CalledAsVariable) != "" {
		return "kopf"
	}
	return root.Name()
}

// usageError is a mistake in the command line.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

// usageErrorf returns a usageError.
func usageErrorf(format string, values ...any) error {
	return &usageError{fmt.Errorf(format, values...)}
}

// exitError has an exit code for an outcome that was already reported: by an answer, or by another
// process, whose exit code it is.
type exitError struct {
	code    int
	outcome string
}

func (e *exitError) Error() string { return cmp.Or(e.outcome, fmt.Sprintf("exit code %d", e.code)) }

// ExitCode returns the exit code for the error of a command: 0 without an error.
func ExitCode(err error) int {
	var ended *exitError
	var usage *usageError
	switch {
	case err == nil:
		return ExitOK
	case errors.As(err, &ended):
		return ended.code
	case errors.As(err, &usage):
		return ExitUsage
	default:
		return ExitError
	}
}

// loggedError is an error of an operator with a JSON log. It is logged, because log
// collectors cannot read a plain last line.
type loggedError struct {
	error
	logger logr.Logger
}

func (e *loggedError) Unwrap() error { return e.error }
