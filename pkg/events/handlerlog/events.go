package handlerlog

import (
	"log/slog"
	"slices"

	"github.com/go-logr/logr"

	"github.com/kopf-go/kopf/pkg/events"
	"github.com/kopf-go/kopf/pkg/model/object"
)

// Events are what the lines of handlers become, besides being logged.
type Events struct {
	Poster events.Poster
	// Level is that of the least important lines that are posted. A line of V(n)
	// has the level -n, and an error slog.LevelError.
	Level slog.Level
}

// Logger makes the logger of a handler, with some more values. What is written to
// it is posted about the object, be it logged or not: the two levels have nothing to
// do with each other. The events have the values that are added from here on. Nil
// Events post nothing.
func (e *Events) Logger(logger logr.Logger, about func() *object.Body, values ...any) logr.Logger {
	if e == nil {
		return logger.WithValues(values...)
	}
	sink := lazySink{}
	if logger.GetSink() != nil {
		sink = lazy(logger.GetSink())
	}
	sink = sink.with(values)
	return logger.WithSink(eventSink{lazySink: sink, events: e, about: about, base: logger.GetV(), known: len(sink.values)})
}

// LogOnly makes a logger that posts nothing of one that does; any other one is
// returned as it is.
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

// eventSink posts the lines that it writes. It calls the sink below as a lazy sink
// does, not through one: the place of the caller is told by counting calls.
type eventSink struct {
	lazySink
	events *Events
	about  func() *object.Body // looked at when there is something to post
	base   int                 // the verbosity that the logger had from the beginning
	known  int                 // how many of the values say nothing new about the object
}

var _ logr.CallDepthLogSink = eventSink{}

// Enabled reports whether anybody is interested, the log or the events.
func (s eventSink) Enabled(level int) bool {
	return s.posts(s.level(level)) || s.lazySink.Enabled(level)
}

// Info logs the line if it is to be logged, and posts it if it is to be posted.
func (s eventSink) Info(level int, message string, values ...any) {
	if s.lazySink.Enabled(level) {
		s.sink.Info(level, message, slices.Concat(s.values, values)...)
	}
	s.post(s.level(level), message, nil, values)
}

// Error logs the line, and posts it if it is to be posted.
func (s eventSink) Error(err error, message string, values ...any) {
	if s.sink != nil {
		s.sink.Error(err, message, slices.Concat(s.values, values)...)
	}
	s.post(slog.LevelError, message, err, values)
}

// level is that of a line by its verbosity, as everywhere between the two packages.
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
	case level < slog.LevelInfo:
		eventType = events.TypeDebug
	}
	text := sentence(message, err, slices.Concat(s.values[s.known:], values))
	s.events.Poster.Post(events.Reference(s.about()), eventType, events.ReasonLogging, text)
}

// WithValues adds values for the lines to come.
func (s eventSink) WithValues(values ...any) logr.LogSink {
	s.lazySink = s.with(values)
	return s
}

// WithName adds a name for the lines to come; events do not show it.
func (s eventSink) WithName(name string) logr.LogSink {
	s.lazySink = s.named(name)
	return s
}

// WithCallDepth makes lines show the place of a caller further up.
func (s eventSink) WithCallDepth(depth int) logr.LogSink {
	s.lazySink = s.deeper(depth)
	return s
}
