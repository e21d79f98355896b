package handlerlog

import (
	"log/slog"
	"slices"

	"github.com/go-logr/logr"

	"github.com/kopf-go/kopf/pkg/events"
	"github.com/kopf-go/kopf/pkg/model/object"
)

// Events configures how log lines of handlers are posted as events.
type Events struct {
	Poster events.Poster
	// Level is the lowest level of the lines that are posted. A line of V(n) has the
	// level -n, and an error has slog.LevelError.
	Level slog.Level
}

// Logger returns the logger of a handler with additional values. Its lines are posted as
// events about the object, whether they are logged or not: the two levels are independent.
// Events contain only the values that are added here or later. Nil Events post nothing.
func (e *Events) Logger(logger logr.Logger, about func() *object.Body, values ...any) logr.Logger {
	if e == nil {
		return logger.WithValues(values...)
	}
	sink := lazySink{}
	if logger.GetSink() != nil {
		sink = lazy(logger.GetSink())
	}
	sink = sink.addValues(values)
	return logger.WithSink(eventSink{lazySink: sink, events: e, about: about, base: logger.GetV(), known: len(sink.values)})
}

// LogOnly returns a logger that writes the same lines but posts no events. It returns
// other loggers unchanged.
func LogOnly(logger logr.Logger) logr.Logger {
	s, posts := logger.GetSink().(eventSink)
	switch {
	case !posts:
		return logger
	case s.sink == nil:
		return logr.Discard()
	default:
		return logger.WithSink(s.lazySink)
	}
}

// Warn logs a line as Info does, because a log of logr has no warnings. The event of the line, however, has the type
// Warning and slog.LevelWarn.
func Warn(logger logr.Logger, message string, values ...any) {
	s, posts := logger.GetSink().(eventSink)
	LogOnly(logger).Info(message, values...)
	if posts {
		s.post(slog.LevelWarn, message, nil, values)
	}
}

// eventSink posts the lines that it writes. It calls the wrapped sink directly instead of
// a lazySink, because the location of the caller depends on the number of calls.
type eventSink struct {
	lazySink
	events *Events
	about  func() *object.Body // called only to post
	base   int                 // the initial verbosity of the logger
	known  int                 // number of the first values that are left out of events
}

var _ logr.CallDepthLogSink = eventSink{}

// Enabled reports whether the line is logged or posted.
func (s eventSink) Enabled(level int) bool {
	return s.posts(s.level(level)) || s.lazySink.Enabled(level)
}

// Info logs and posts the line if the levels allow it.
func (s eventSink) Info(level int, message string, values ...any) {
	if s.lazySink.Enabled(level) {
		s.sink.Info(level, message, slices.Concat(s.values, values)...)
	}
	s.post(s.level(level), message, nil, values)
}

// Error logs the line, and posts it if the level allows it.
func (s eventSink) Error(err error, message string, values ...any) {
	if s.sink != nil {
		s.sink.Error(err, message, slices.Concat(s.values, values)...)
	}
	s.post(slog.LevelError, message, err, values)
}

// level converts a verbosity to a level, as logr and slog do.
func (s eventSink) level(verbosity int) slog.Level { return slog.Level(s.base - verbosity) }

func (s eventSink) posts(level slog.Level) bool { return level >= s.events.Level }

func (s eventSink) post(level slog.Level, message string, err error, values []any) {
	if !s.posts(level) {
		return
	}
	eventType := events.TypeNormal
	switch {
	case level >= slog.LevelError:
		eventType = events.TypeError
	case level >= slog.LevelWarn:
		eventType = events.TypeWarning
	case level < slog.LevelInfo:
		eventType = events.TypeDebug
	}
	text := eventMessage(message, err, slices.Concat(s.values[s.known:], values))
	s.events.Poster.Post(events.Reference(s.about()), eventType, events.ReasonLogging, text)
}

// WithValues adds values to future lines.
func (s eventSink) WithValues(values ...any) logr.LogSink {
	s.lazySink = s.addValues(values)
	return s
}

// WithName adds a name to future lines. Events do not show it.
func (s eventSink) WithName(name string) logr.LogSink {
	s.lazySink = s.addName(name)
	return s
}

// WithCallDepth makes lines show a caller further up the stack.
func (s eventSink) WithCallDepth(depth int) logr.LogSink {
	s.lazySink = s.addCallDepth(depth)
	return s
}
