package reconcile

import (
	"slices"

	"github.com/go-logr/logr"
)

// lazySink keeps the values that a logger is given until a line is written.
// Structured loggers encode values when they get them, and most passes over most
// objects write no line at all: that was a tenth of all memory they allocated.
type lazySink struct {
	sink   logr.LogSink
	values []any
}

var _ logr.CallDepthLogSink = lazySink{}

// lazily makes a logger that costs next to nothing while it writes nothing.
func lazily(logger logr.Logger) logr.Logger {
	sink := logger.GetSink()
	if sink == nil {
		return logger
	}
	level := logger.GetV()
	return logr.New(lazySink{sink: sink}.WithCallDepth(1)).V(level)
}

// Init does nothing: the sink below has its logger already.
func (lazySink) Init(logr.RuntimeInfo) {}

// Enabled asks the sink below.
func (s lazySink) Enabled(level int) bool { return s.sink.Enabled(level) }

// Info writes a line with all values.
func (s lazySink) Info(level int, message string, values ...any) {
	s.sink.Info(level, message, slices.Concat(s.values, values)...)
}

// Error writes a line with all values.
func (s lazySink) Error(err error, message string, values ...any) {
	s.sink.Error(err, message, slices.Concat(s.values, values)...)
}

// WithValues adds values for the lines to come.
func (s lazySink) WithValues(values ...any) logr.LogSink {
	return lazySink{s.sink, slices.Concat(s.values, values)}
}

// WithName adds a name for the lines to come.
func (s lazySink) WithName(name string) logr.LogSink {
	return lazySink{s.sink.WithName(name), s.values}
}

// WithCallDepth makes lines show the place of a caller further up.
func (s lazySink) WithCallDepth(depth int) logr.LogSink {
	if deep, ok := s.sink.(logr.CallDepthLogSink); ok {
		s.sink = deep.WithCallDepth(depth)
	}
	return s
}
