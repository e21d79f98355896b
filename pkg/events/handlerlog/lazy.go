package handlerlog

import (
	"slices"

	"github.com/go-logr/logr"
)

// lazySink keeps the values of a logger until a line is written. Structured loggers
// encode values when they get them, but most passes write no line, so this encoding
// took a tenth of all allocated memory.
type lazySink struct {
	sink   logr.LogSink // nil discards the log
	values []any
}

var _ logr.CallDepthLogSink = lazySink{}

// Lazily returns a logger that costs almost nothing while it writes nothing.
func Lazily(logger logr.Logger) logr.Logger {
	if logger.GetSink() == nil {
		return logger
	}
	return logger.WithSink(lazy(logger.GetSink()))
}

// lazy returns the sink if it is lazy, or wraps it otherwise.
func lazy(sink logr.LogSink) lazySink {
	if already, ok := sink.(lazySink); ok {
		return already
	}
	if deep, ok := sink.(logr.CallDepthLogSink); ok { // skips the additional call
		sink = deep.WithCallDepth(1)
	}
	return lazySink{sink: sink}
}

// Init does nothing, because the wrapped sink is already initialized.
func (lazySink) Init(logr.RuntimeInfo) {}

// Enabled asks the wrapped sink.
func (s lazySink) Enabled(level int) bool { return s.sink != nil && s.sink.Enabled(level) }

// Info writes a line with all values.
func (s lazySink) Info(level int, message string, values ...any) {
	s.sink.Info(level, message, slices.Concat(s.values, values)...)
}

// Error writes a line with all values.
func (s lazySink) Error(err error, message string, values ...any) {
	s.sink.Error(err, message, slices.Concat(s.values, values)...)
}

// WithValues adds values to future lines.
func (s lazySink) WithValues(values ...any) logr.LogSink { return s.addValues(values) }

func (s lazySink) addValues(values []any) lazySink {
	return lazySink{s.sink, slices.Concat(s.values, values)}
}

// WithName adds a name to future lines.
func (s lazySink) WithName(name string) logr.LogSink { return s.addName(name) }

func (s lazySink) addName(name string) lazySink {
	if s.sink != nil {
		s.sink = s.sink.WithName(name)
	}
	return s
}

// WithCallDepth makes lines show a caller further up the stack.
func (s lazySink) WithCallDepth(depth int) logr.LogSink { return s.addCallDepth(depth) }

func (s lazySink) addCallDepth(depth int) lazySink {
	if deep, ok := s.sink.(logr.CallDepthLogSink); ok {
		s.sink = deep.WithCallDepth(depth)
	}
	return s
}
