package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"
	"go.uber.org/zap/zapcore"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/kopf-go/kopf/pkg/kopf/settings"
)

// The exit codes of an operator.
const (
	ExitOK    = 0
	ExitError = 1 // it could not be started, or could not go on
	ExitUsage = 2 // the command line was wrong
)

// Invocation is what the command line asks for.
type Invocation struct {
	Config     *rest.Config
	Namespaces []string // empty: all
	Peering    settings.Peering
	Logger     logr.Logger
}

// Main runs an operator as a program: with the program's arguments, until it is
// interrupted. The first signal stops it gracefully, the second one at once. The
// result is the exit code.
func Main(run func(context.Context, Invocation) error) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// Once the first signal has come, the next one has its usual effect.
	context.AfterFunc(ctx, stop)
	return execute(ctx, filepath.Base(os.Args[0]), os.Args[1:], os.Stderr, run)
}

func execute(ctx context.Context, program string, arguments []string, out io.Writer, run func(context.Context, Invocation) error) int {
	flags, err := Parse(program, arguments, out)
	switch {
	case errors.Is(err, pflag.ErrHelp):
		return ExitOK
	case err != nil:
		_, _ = fmt.Fprintf(out, "%s: %v\nTry %s --help.\n", program, err, program)
		return ExitUsage
	}
	logger := flags.logger(out)
	flags.share(logger)
	config, err := flags.Config()
	if err == nil {
		err = run(ctx, Invocation{Config: config, Namespaces: flags.Namespaces, Peering: flags.peering(), Logger: logger})
	}
	if err != nil {
		_, _ = fmt.Fprintf(out, "%s: %v\n", program, err)
		return ExitError
	}
	return ExitOK
}

// requests is the verbosity at which client-go logs its requests. From 8 on it
// logs their bodies too, and with them Secrets.
const requests = 6

// share makes the libraries log as the operator does.
func (f Flags) share(logger logr.Logger) {
	log.SetLogger(logger)
	klog.SetLogger(logger.WithName("client"))
	if f.Debug {
		var verbosity klog.Level
		_ = verbosity.Set(strconv.Itoa(requests)) // of klog as a whole; a number is no error
	}
}

// logger writes lines for people.
func (f Flags) logger(out io.Writer) logr.Logger {
	level := zapcore.InfoLevel
	switch {
	case f.Debug:
		level = -requests
	case f.Verbose:
		level = zapcore.DebugLevel
	case f.Quiet:
		level = zapcore.ErrorLevel
	}
	return zap.New(zap.WriteTo(out), zap.Level(level), zap.StacktraceLevel(zapcore.PanicLevel),
		zap.ConsoleEncoder(func(c *zapcore.EncoderConfig) {
			c.EncodeTime = zapcore.ISO8601TimeEncoder
			c.EncodeLevel = zapcore.CapitalLevelEncoder
		}))
}
