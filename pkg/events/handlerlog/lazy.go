package handlerlog

import (
	"slices"

	"github.com/go-logr/logr"
)

// lazySink keeps the values that a logger is given until a line is written.
// Structured loggers encode values when they get them, and most passes over most
// objects write no line at all: that was a tenth of all memory they allocated.
type lazySink struct {
	sink   logr.LogSink // nil: the log is discarded
	values []any
}

var _ logr.CallDepthLogSink = lazySink{}

// Lazily makes a logger that costs next to nothing while it writes nothing.
func Lazily(logger logr.Logger) logr.Logger {
	if logger.GetSink() == nil {
		return logger
	}
	return logger.WithSink(lazy(logger.GetSink()))
}

// lazy is the sink, if it is lazy already, or a lazy one above it.
func lazy(sink logr.LogSink) lazySink {
	if already, ok := sink.(lazySink); ok {
		return already
	}
	if deep, ok := sink.(logr.CallDepthLogSink); ok { // for there is one call more
		sink = deep.WithCallDepth(1)
	}
	return lazySink{sink: sink}
}

// Init does nothing: the sink below has its logger already.
func (lazySink) Init(logr.RuntimeInfo) {}

// Enabled asks the sink below.
func (s lazySink) Enabled(level int) bool { return s.sink != nil && s.sink.Enabled(level) }

// Info writes a line with all values.
func (s lazySink) Info(level int, message string, values ...any) {
	s.sink.Info(level, message, slices.Concat(s.values, values)...)
}

// Error writes a line with all values.
func (s lazySink) Error(err error, message string, values ...any) {
	s.sink.Error(err, message, slices.Concat(s.values, values)...)
}

// WithValues adds values for the lines to come.
func (s lazySink) WithValues(values ...any) logr.LogSink { return s.with(values) }

func (s lazySink) with(values []any) lazySink {
	return lazySink{s.sink, slices.Concat(s.values, values)}
}

// WithName adds a name for the lines to come.
func (s lazySink) WithName(name string) logr.LogSink { return s.named(name) }

func (s lazySink) named(name string) lazySink {
	if s.sink != nil {
		s.sink = s.sink.WithName(name)
	}
	return s
}

// WithCallDepth makes lines show the place of a caller further up.
func (s lazySink) WithCallDepth(depth int) logr.LogSink { return s.deeper(depth) }

func (s lazySink) deeper(depth int) lazySink {
	if deep, ok := s.sink.(logr.CallDepthLogSink); ok {
		s.sink = deep.WithCallDepth(depth)
	}
	return s
}
