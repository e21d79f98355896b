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

// requestVerbosity is the verbosity at which client-go logs its requests. From 8 on it
// logs their bodies too, and with them Secrets.
const requestVerbosity = 6

// logFlags say what is logged, and how.
type logFlags struct {
	quiet, verbose, debug bool
	format                string
	prefix, noPrefix      bool
	referenceKey          string
}

func (f *logFlags) define(set *pflag.FlagSet) {
	set.BoolVarP(&f.verbose, "verbose", "v", false, "log more: what the operator decides")
	set.BoolVarP(&f.debug, "debug", "d", false, "log everything: the requests to the cluster too, but not what is in them")
	set.BoolVarP(&f.quiet, "quiet", "q", false, "log only errors")
	set.StringVar(&f.format, "log-format", string(logformat.Full), "how lines look: full, plain (without time and level), or json")
	set.BoolVar(&f.prefix, "log-prefix", false, "begin messages about an object with its name (default: true, but false with json)")
	set.BoolVar(&f.noPrefix, "no-log-prefix", false, "do not begin them so")
	set.StringVar(&f.referenceKey, "log-refkey", logformat.DefaultReferenceKey, "the `key` of the object in lines of json")
}

// complete decides what depends on what was said.
func (f *logFlags) complete(set *pflag.FlagSet) error {
	if !slices.Contains(logformat.Formats(), logformat.Format(f.format)) {
		return usageErrorf("--log-format is %q: use full, plain or json", f.format)
	}
	if !set.Changed("log-prefix") { // lines of json have the object in another place
		f.prefix = !f.noPrefix && logformat.Format(f.format) != logformat.JSON
	}
	return nil
}

func (f *logFlags) verbosity() int {
	switch {
	case f.debug:
		return requestVerbosity
	case f.verbose:
		return 1
	case f.quiet:
		return logformat.Errors
	default:
		return 0
	}
}

// newLogger writes lines as the flags say.
func (f *logFlags) newLogger(out io.Writer) logr.Logger {
	return logformat.New(out, logformat.Options{
		Format: logformat.Format(f.format), Verbosity: f.verbosity(), ReferenceKey: f.referenceKey,
		Prefix: f.prefix,
		Colors: supportsColor(out),
	})
}

// supportsColor reports whether there is somebody to see colours, and to like them.
func supportsColor(out io.Writer) bool {
	file, ok := out.(*os.File)
	return ok && term.IsTerminal(int(file.Fd())) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

// installLogger makes the libraries log as the operator does.
func (f *logFlags) installLogger(logger logr.Logger) {
	log.SetLogger(logger)
	klog.SetLogger(logger.WithName("client"))
	if f.debug {
		var verbosity klog.Level
		_ = verbosity.Set(strconv.Itoa(requestVerbosity)) // of klog as a whole; a number is no error
	}
}
