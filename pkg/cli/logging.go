package cli

import (
	"io"
	"os"
	"slices"
	"strconv"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"
	"golang.org/x/term"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-go/kopf/pkg/cli/logformat"
)

// requestVerbosity is the verbosity at which client-go logs its requests. From 8 on, it
// also logs their bodies, which can be Secrets.
const requestVerbosity = 6

// logFlags holds the flags for the log.
type logFlags struct {
	quiet, verbose, debug bool
	format                string
	prefix, noPrefix      bool
	referenceKey          string
}

func (f *logFlags) define(set *pflag.FlagSet) {
	set.BoolVarP(&f.verbose, "verbose", "v", false, "also log the decisions of the operator")
	set.BoolVarP(&f.debug, "debug", "d", false, "also log the requests to the cluster, without their content")
	set.BoolVarP(&f.quiet, "quiet", "q", false, "log only errors")
	set.StringVar(&f.format, "log-format", string(logformat.Full), "the format of log lines: full, plain (without time and level), or json")
	set.BoolVar(&f.prefix, "log-prefix", false, "prefix messages with the name of the object (default: true, but false for json)")
	set.BoolVar(&f.noPrefix, "no-log-prefix", false, "do not prefix messages")
	set.StringVar(&f.referenceKey, "log-refkey", logformat.DefaultReferenceKey, "the `key` of the object in json lines")
}

// complete checks the format and sets the default of the prefix.
func (f *logFlags) complete(set *pflag.FlagSet) error {
	if !slices.Contains(logformat.Formats(), logformat.Format(f.format)) {
		return usageErrorf("--log-format is %q: use full, plain, or json", f.format)
	}
	if !set.Changed("log-prefix") { // JSON lines have a separate field for the object
		f.prefix = !f.noPrefix && logformat.Format(f.format) != logformat.JSON
	}
	return nil
}

// newLogger returns a logger that is configured by the flags.
func (f *logFlags) newLogger(out io.Writer) logr.Logger {
	verbosity := 0
	switch {
	case f.debug:
		verbosity = requestVerbosity
	case f.verbose:
		verbosity = 1
	case f.quiet:
		verbosity = logformat.Errors
	}
	return logformat.New(out, logformat.Options{
		Format: logformat.Format(f.format), Verbosity: verbosity, ReferenceKey: f.referenceKey,
		Prefix: f.prefix,
		Colors: supportsColor(out),
	})
}

// supportsColor reports whether the output is a terminal for which colors are not disabled.
func supportsColor(out io.Writer) bool {
	file, ok := out.(*os.File)
	return ok && term.IsTerminal(int(file.Fd())) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

// installLogger sets the logger of client-go and controller-runtime.
func (f *logFlags) installLogger(logger logr.Logger) {
	log.SetLogger(logger)
	klog.SetLogger(logger.WithName("client"))
	if f.debug {
		var verbosity klog.Level
		_ = verbosity.Set(strconv.Itoa(requestVerbosity)) // for all of klog; a number is always valid
	}
}
