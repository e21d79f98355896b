package logformat

import (
	"io"

	"github.com/go-logr/logr"
	"github.com/go-logr/zapr"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	crzap "sigs.k8s.io/controller-runtime/pkg/log/zap"
)

// Format is the format of log lines.
type Format string

// The formats.
const (
	Full  Format = "full"  // the time, the level, the logger, the message, the values
	Plain Format = "plain" // the message and the values
	JSON  Format = "json"  // one JSON object per line
)

// Formats returns all formats.
func Formats() []Format { return []Format{Full, Plain, JSON} }

// DefaultReferenceKey is the default of Options.ReferenceKey.
const DefaultReferenceKey = "object"

// Errors is the value of Options.Verbosity to log only errors.
const Errors = -1

// Options configure a log. The zero value is the format Full without prefixes.
type Options struct {
	// Format of the lines. Default: Full.
	Format Format
	// Verbosity is the highest level of logr that is logged. Errors are always logged.
	Verbosity int
	// Prefix adds the name of the object before the message.
	Prefix bool
	// ReferenceKey is the key of the object in JSON lines. Default: DefaultReferenceKey.
	ReferenceKey string
	// Colors adds colors to the levels of Full lines, for terminals.
	Colors bool
}

// New returns the logger of a program. It is safe for concurrent use. It writes every line
// at once, and omits none.
func New(out io.Writer, options Options) logr.Logger {
	encoder := &crzap.KubeAwareEncoder{Encoder: options.encoder()} // writes the names of objects, not their content
	level := zapcore.Level(-options.Verbosity)
	if options.Verbosity <= Errors {
		level = zapcore.ErrorLevel
	}
	lines := zapcore.NewCore(encoder, zapcore.Lock(zapcore.AddSync(sanitizer{out})), level)
	return zapr.NewLoggerWithOptions(zap.New(core{Core: lines, options: options}), zapr.DPanicOnBugs(false))
}
