package operator

import "github.com/go-logr/logr"

// hushed is the log of a manager that nobody but the operator knows of. Its comings and
// goings are of no interest. What it takes for errors it also returns; the rest is the
// unrest of an orderly end.
type hushed struct{ logr.LogSink }

// hush is how far down the manager's lines are.
const hush = 2

func murmur(logger logr.Logger) logr.Logger {
	if logger.GetSink() == nil {
		return logger
	}
	return logr.New(hushed{logger.GetSink()}).V(hush)
}

// Error makes a line like any other.
func (h hushed) Error(err error, message string, values ...any) {
	h.Info(hush, message, append(values, "error", err)...)
}

// WithValues keeps the lines down.
func (h hushed) WithValues(values ...any) logr.LogSink {
	return hushed{h.LogSink.WithValues(values...)}
}

// WithName keeps the lines down.
func (h hushed) WithName(name string) logr.LogSink { return hushed{h.LogSink.WithName(name)} }
