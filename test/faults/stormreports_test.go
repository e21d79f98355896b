package faults

import (
	"strings"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
)

// What is recorded as a success is also said, by the operator that has recorded it.

// teller is an operator that tells about a handler.
type teller struct {
	operator *stormOperator
	handler  string
}

// countSuccess counts an end that is recorded now.
func (s *subject) countSuccess(o *stormOperator, id string, e ending) {
	if e.result != "" && !s.rejects[e.entry] && !s.banned[e.entry] {
		s.successes[teller{o, id}]++
	}
}

// judgeReports checks that the operator that runs has said which handlers have succeeded.
func (s *subject) judgeReports() {
	if !s.storm.strict() || s.damaged {
		return
	}
	for what, recorded := range s.successes {
		if what.operator != s.storm.operator || s.loose[what.handler] {
			continue
		}
		if said := s.heard[what]; said < recorded {
			s.breach("%s has recorded %d successes of %s, and said %d", what.operator.name, recorded, what.handler, said)
		}
	}
}

// listener is the log of an operator. It notes what is said about the handlers of objects.
type listener struct {
	logr.LogSink    // nil if nobody reads it
	operator        *stormOperator
	object, handler string
}

// Enabled accepts what everybody reads.
func (l listener) Enabled(level int) bool { return level == 0 || l.shows(level) }

func (l listener) shows(level int) bool { return l.LogSink != nil && l.LogSink.Enabled(level) }

// Init prepares the log.
func (l listener) Init(info logr.RuntimeInfo) {
	if l.LogSink != nil {
		l.LogSink.Init(info)
	}
}

// Error shows a failure. No filter and no storage of a storm panics, so the framework must not.
func (l listener) Error(err error, message string, values ...any) {
	if err != nil && strings.Contains(err.Error(), "a panic in ") {
		l.operator.storm.breach("%s says: %s %v", l.operator.name, message, err)
	}
	if l.LogSink != nil {
		l.LogSink.Error(err, message, values...)
	}
}

// WithValues notes what the lines are about.
func (l listener) WithValues(values ...any) logr.LogSink {
	l.note(values)
	if l.LogSink != nil {
		l.LogSink = l.LogSink.WithValues(values...)
	}
	return l
}

// WithName keeps listening.
func (l listener) WithName(name string) logr.LogSink {
	if l.LogSink != nil {
		l.LogSink = l.LogSink.WithName(name)
	}
	return l
}

func (l *listener) note(values []any) {
	for i := 0; i+1 < len(values); i += 2 {
		switch value := values[i+1].(type) {
		case string:
			if values[i] == "handler" {
				l.handler = value
			}
		case logr.Marshaler:
			if about, ok := value.MarshalLog().(corev1.ObjectReference); ok {
				l.object = about.Name
			}
		}
	}
}

// Info notes the success of a handler.
func (l listener) Info(level int, message string, values ...any) {
	if l.shows(level) {
		l.LogSink.Info(level, message, values...)
	}
	l.note(values)
	if message != "The handler succeeded." {
		return
	}
	for _, subject := range l.operator.storm.subjects {
		if subject.name == l.object {
			subject.hear(teller{l.operator, l.handler})
		}
	}
}

// hear notes that a success was said.
func (s *subject) hear(what teller) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.heard[what]++
}
