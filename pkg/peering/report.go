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
	topicWatch   = "watch"
	topicExpiry  = "expiry" // whether a peer is dead
	topicWrite   = "write"
	topicEntries = "entries" // entries
	topicObject  = "object"  // the object itself
)

// reportOnce complains of something, unless it has just been said.
func (m *member) reportOnce(subject string, err error, message string, values ...any) {
	text := message
	if subject == topicEntries || subject == topicObject {
		text += err.Error() // the others are never the same twice: ports, times
	}
	if m.reported[subject] == text {
		return
	}
	m.reported[subject] = text
	m.logger.Error(err, message, values...)
}

// clearReport is when there is nothing to be said of the subject any more.
func (m *member) clearReport(subject string) { delete(m.reported, subject) }

// reportInvalidEntries tells which entries nobody understands. They are left alone: whoever
// wrote them may understand them.
func (m *member) reportInvalidEntries(broken map[string]error) {
	if len(broken) == 0 {
		m.clearReport(topicEntries)
		return
	}
	var problems []string
	for _, peer := range slices.Sorted(maps.Keys(broken)) {
		problems = append(problems, peer+": "+broken[peer].Error())
	}
	m.reportOnce(topicEntries, errors.New(strings.Join(problems, "; ")), "Some entries in the peering object are broken and are ignored; remove them.")
}

// reportMissing tells that the operator is alone. That is worth a warning only if
// it is not what was asked for.
func (m *member) reportMissing(err error) {
	switch {
	case m.settings.Mandatory && apierrors.IsForbidden(err):
		m.reportOnce(topicObject, err, "The operator is paused: it may not look at its mandatory peering (verbs get, list, watch, patch).")
	case m.settings.Mandatory:
		m.reportOnce(topicObject, err, "The operator is paused: its mandatory peering object is missing.")
	case apierrors.IsForbidden(err):
		m.reportOnce(topicObject, err, "The operator serves without regard to others: it may not look at the peering (verbs get, list, watch, patch). With --standalone it does not try.")
	case m.objectExists:
		m.reportOnce(topicObject, err, "The peering object is gone: the operator goes on without regard to others.")
	case !m.decided:
		m.logger.V(1).Info("There is no peering object: the operator serves without regard to others.", "reason", err.Error())
	}
}

// applyDecision tells the decision, and logs what has changed by it.
func (m *member) applyDecision(d Decision) {
	before, first := m.decision, !m.decided
	m.decided, m.decision = true, d
	if first || !d.equal(before) {
		m.logDecision(d, before)
	}
	m.notify(d)
}

func (m *member) logDecision(d, before Decision) {
	switch {
	case d.Reason == ReasonHigherPriority:
		m.logger.Info("The operator is paused in favour of others, which have a higher priority.", "priority", m.settings.Priority, "peers", d.Peers)
	case d.Reason == ReasonSamePriority:
		m.logger.Error(errSamePriority, "The operator is paused.", "priority", m.settings.Priority, "peers", d.Peers)
	case !d.Paused && before.Paused:
		m.logger.Info("The operator resumes its work: nobody pauses it any more.")
	}
}
