package operator

import "github.com/go-logr/logr"

// quietSink is the log sink of a manager that belongs to the operator. Its routine lines are
// not interesting: the manager returns important errors, and the rest is the noise of an
// orderly shutdown.
type quietSink struct{ logr.LogSink }

// quietLevel is the verbosity of the manager's lines.
const quietLevel = 2

// quiet returns a logger whose lines, errors included, are written at quietLevel.
func quiet(logger logr.Logger) logr.Logger {
	if logger.GetSink() == nil {
		return logger
	}
	return logr.New(quietSink{logger.GetSink()}).V(quietLevel)
}

// Error writes the error as a line at quietLevel.
func (q quietSink) Error(err error, message string, values ...any) {
	q.Info(quietLevel, message, append(values, "error", err)...)
}

// WithValues returns a quiet sink with the values.
func (q quietSink) WithValues(values ...any) logr.LogSink {
	return quietSink{q.LogSink.WithValues(values...)}
}

// WithName returns a quiet sink with the name.
func (q quietSink) WithName(name string) logr.LogSink { return quietSink{q.LogSink.WithName(name)} }
