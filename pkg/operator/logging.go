package operator

import (
	"reflect"
	"sync"
	"sync/atomic"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
)

// client-go logs to the logger of klog, which writes to standard error in another format. The
// logger must not change while others log, so it is set when the program starts, and
// follows that of the operator. A program that sets another one later replaces it.
func init() { klog.SetLogger(logr.New(librarySink{})) } //nolint:gochecknoinits // see above

// libraries is the logger of the last operator that was started; nil before that.
var libraries atomic.Pointer[logr.Logger]

// adoptClient lets client-go log to the logger of an operator.
func adoptClient(logger logr.Logger) {
	client := logger.WithName("client")
	libraries.Store(&client)
}

// AdoptController lets controller-runtime log to the logger of an operator, unless it has a logger, or the
// operator logs to that of controller-runtime. Without any, it complains on standard error.
func AdoptController(logger logr.Logger) {
	adopting.Lock()
	defer adopting.Unlock()
	if reflect.TypeOf(logger.GetSink()) != reflect.TypeOf(ctrllog.Log.GetSink()) {
		ctrllog.SetLogger(logger)
	}
}

// adopting orders operators that start at the same time: controller-runtime does not.
var adopting sync.Mutex

// librarySink passes lines on to the logger of the operator.
type librarySink struct {
	names  []string
	values []any
}

// logger returns the logger of the operator with the names and values of the sink.
func (s librarySink) logger() logr.Logger {
	current := libraries.Load()
	if current == nil {
		return logr.Discard()
	}
	logger := *current
	for _, name := range s.names {
		logger = logger.WithName(name)
	}
	return logger.WithValues(s.values...)
}

// Init does nothing.
func (s librarySink) Init(logr.RuntimeInfo) {}

// Enabled reports whether the operator logs lines of a level.
func (s librarySink) Enabled(level int) bool { return s.logger().V(level).Enabled() }

// Info passes on a line.
func (s librarySink) Info(level int, message string, values ...any) {
	s.logger().V(level).Info(message, values...)
}

// Error passes on an error.
func (s librarySink) Error(err error, message string, values ...any) {
	s.logger().Error(err, message, values...)
}

// WithValues returns a sink with more values.
func (s librarySink) WithValues(values ...any) logr.LogSink {
	s.values = append(s.values[:len(s.values):len(s.values)], values...)
	return s
}

// WithName returns a sink with another name.
func (s librarySink) WithName(name string) logr.LogSink {
	s.names = append(s.names[:len(s.names):len(s.names)], name)
	return s
}

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
