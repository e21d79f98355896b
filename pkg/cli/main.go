package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
)

// The exit codes.
const (
	ExitOK    = 0
	ExitError = 1 // it could not be started, or could not go on
	ExitUsage = 2 // the command line was wrong, or a variable of the environment
)

// Main runs an operator as a program: with the program's arguments and environment,
// until it is interrupted. The first signal stops it gracefully; another one, a second
// or more later, ends it at once. The result is the exit code.
func Main(run func(context.Context, Invocation) error) int {
	return runProcess(newOperatorCommand(filepath.Base(os.Args[0]), run))
}

// KopfMain runs the command kopf. The result is the exit code.
func KopfMain() int { return runProcess(newKopfCommand()) }

// repeatedSignalWindow is how long another signal is taken for the same one.
const repeatedSignalWindow = time.Second

// runProcess runs a command as the process.
func runProcess(command *cobra.Command) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// Once the first signal has come, the next one has its usual effect. One that comes
	// right behind is the same: some send it to a process and to its group.
	context.AfterFunc(ctx, func() { time.AfterFunc(repeatedSignalWindow, stop) })
	command.SetArgs(os.Args[1:])
	return execute(ctx, command, os.Stdout, os.Stderr)
}

// execute runs a command: what was asked for goes to out, the log and all
// complaints to log.
func execute(ctx context.Context, command *cobra.Command, out, log io.Writer) int {
	command.SetOut(out)
	command.SetErr(log)
	prepareCommand(command)
	called, err := command.ExecuteContextC(ctx)
	var logged *loggedError
	var usage *usageError
	var ended *exitError
	switch {
	case err == nil, ctx.Err() != nil && errors.Is(err, context.Canceled): // interrupted before it has begun
		return ExitOK
	case errors.As(err, &logged):
		logged.logger.Error(withAdvice(logged.error), "The operator has ended.")
		return ExitError
	case errors.As(err, &ended): // has told its own story
		return ended.code
	case errors.As(err, &usage):
		_, _ = fmt.Fprintf(log, "%s: %v\nTry %s --help.\n", command.Name(), err, called.CommandPath())
		return ExitUsage
	default:
		_, _ = fmt.Fprintf(log, "%s: %v\n", command.Name(), withAdvice(err))
		return ExitError
	}
}

// usageError is a mistake in the command line.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

// usageErrorf makes a usageError.
func usageErrorf(format string, values ...any) error {
	return &usageError{fmt.Errorf(format, values...)}
}

// exitError is the end of another process, whose exit code becomes that of this one.
type exitError struct{ code int }

func (e *exitError) Error() string { return fmt.Sprintf("exit code %d", e.code) }

// loggedError is the end of an operator whose log is read by machines: the most
// important line must not be the only one that they cannot read.
type loggedError struct {
	error
	logger logr.Logger
}

func (e *loggedError) Unwrap() error { return e.error }
