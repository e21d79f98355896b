package logformat

import (
	"io"

	"github.com/go-logr/logr"
	"github.com/go-logr/zapr"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	crzap "sigs.k8s.io/controller-runtime/pkg/log/zap"
)

// Format is how lines look.
type Format string

// The formats.
const (
	Full  Format = "full"  // the time, the level, the logger, the message, the values
	Plain Format = "plain" // the message and the values
	JSON  Format = "json"  // a JSON object a line
)

// Formats are all there are.
func Formats() []Format { return []Format{Full, Plain, JSON} }

// DefaultReferenceKey is the default of Options.ReferenceKey.
const DefaultReferenceKey = "object"

// Errors, as Options.Verbosity, leaves nothing but errors.
const Errors = -1

// Options are what a log is like. The zero value is a Full one without prefixes.
type Options struct {
	// Format of the lines. Default: Full.
	Format Format
	// Verbosity is the highest that is logged, as logr counts: 0 for what happens,
	// more for more of it. Errors are always logged.
	Verbosity int
	// Prefix puts the name of the object before the message.
	Prefix bool
	// ReferenceKey is where JSON lines have the object. Default:
	// DefaultReferenceKey.
	ReferenceKey string
	// Colors mark the levels of Full lines for a terminal.
	Colors bool
}

// New makes the logger of a program. Safe for concurrent use; every line is
// written at once, and none is left out.
func New(out io.Writer, options Options) logr.Logger {
	encoder := &crzap.KubeAwareEncoder{Encoder: options.encoder()} // objects by their names, never all of them
	level := zapcore.Level(-options.Verbosity)
	if options.Verbosity <= Errors {
		level = zapcore.ErrorLevel
	}
	lines := zapcore.NewCore(encoder, zapcore.Lock(zapcore.AddSync(sanitizer{out})), level)
	return zapr.NewLoggerWithOptions(zap.New(core{Core: lines, options: options}), zapr.DPanicOnBugs(false))
}
