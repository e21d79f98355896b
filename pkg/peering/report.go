package peering

import (
	"errors"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Subjects of complaints. Of each, the same is said once until it is over.
const (
	seeing   = "seeing"
	checking = "checking" // whether a peer is dead
	writing  = "writing"
	reading  = "reading" // entries
	meeting  = "meeting" // the object itself
)

// say complains of something, unless it has just been said.
func (m *member) say(subject string, err error, message string, values ...any) {
	text := message
	if subject == reading || subject == meeting {
		text += err.Error() // the others are never the same twice: ports, times
	}
	if m.said[subject] == text {
		return
	}
	m.said[subject] = text
	m.logger.Error(err, message, values...)
}

// recovered is when there is nothing to be said of the subject any more.
func (m *member) recovered(subject string) { delete(m.said, subject) }

// complain tells which entries nobody understands. They are left alone: whoever
// wrote them may understand them.
func (m *member) complain(broken map[string]error) {
	if len(broken) == 0 {
		m.recovered(reading)
		return
	}
	var problems []string
	for _, peer := range slices.Sorted(maps.Keys(broken)) {
		problems = append(problems, peer+": "+broken[peer].Error())
	}
	m.say(reading, errors.New(strings.Join(problems, "; ")), "Some entries in the peering object are broken and are ignored; remove them.")
}

// reportMissing tells that the operator is alone. That is worth a warning only if
// it is not what was asked for.
func (m *member) reportMissing(err error) {
	switch {
	case m.settings.Mandatory && apierrors.IsForbidden(err):
		m.say(meeting, err, "The operator is paused: it may not look at its mandatory peering (verbs get, list, watch, patch).")
	case m.settings.Mandatory:
		m.say(meeting, err, "The operator is paused: its mandatory peering object is missing.")
	case apierrors.IsForbidden(err):
		m.say(meeting, err, "The operator serves without regard to others: it may not look at the peering (verbs get, list, watch, patch). With --standalone it does not try.")
	case m.present:
		m.say(meeting, err, "The peering object is gone: the operator goes on without regard to others.")
	case !m.decided:
		m.logger.V(1).Info("There is no peering object: the operator serves without regard to others.", "reason", err.Error())
	}
}

// conclude tells the decision, and logs what has changed by it.
func (m *member) conclude(d Decision) {
	before, first := m.decision, !m.decided
	m.decided, m.decision = true, d
	if first || !d.same(before) {
		m.report(d, before)
	}
	m.tell(d)
}

func (m *member) report(d, before Decision) {
	switch {
	case d.Reason == ReasonHigherPriority:
		m.logger.Info("The operator is paused in favour of others, which have a higher priority.", "priority", m.settings.Priority, "peers", d.Peers)
	case d.Reason == ReasonSamePriority:
		m.logger.Error(errConflict, "The operator is paused.", "priority", m.settings.Priority, "peers", d.Peers)
	case !d.Paused && before.Paused:
		m.logger.Info("The operator resumes its work: nobody pauses it any more.")
	}
}
