package peering

import (
	"errors"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Topics of errors. An error is logged once per topic, until the topic is cleared.
const (
	topicWatch   = "watch"
	topicExpiry  = "expiry" // whether a peer is dead
	topicWrite   = "write"
	topicEntries = "entries"
)

// Topics of what a membership logs.
const (
	topicObject    = "object"     // whether there is one
	topicForbidden = "forbidden " // with the API group
)

// reportOnce logs an error, unless it was the last one of the topic.
func (m *member) reportOnce(topic string, err error, message string, values ...any) {
	text := message
	if topic == topicEntries {
		text += err.Error() // errors of other topics differ each time: in ports, in times
	}
	if m.reports.Changed(topic, text) {
		m.logger.Error(err, message, values...)
	}
}

// reportInvalidEntries logs entries that cannot be parsed. They are not removed: their
// writers may understand them.
func (m *member) reportInvalidEntries(invalid map[string]error) {
	if len(invalid) == 0 {
		m.reports.Clear(topicEntries)
		return
	}
	var problems []string
	for _, peer := range slices.Sorted(maps.Keys(invalid)) {
		problems = append(problems, peer+": "+invalid[peer].Error())
	}
	m.reportOnce(topicEntries, errors.New(strings.Join(problems, "; ")), "Some entries of the peering object are invalid and are ignored; remove them.")
}

// reportMissing logs that the operator has no peering object in any API group. That is an
// error only if it is not what the settings ask for.
func (m *membership) reportMissing(err error) {
	switch {
	case m.settings.Mandatory && apierrors.IsForbidden(err):
		m.reportOnce(err, "The operator is paused: it may not read its mandatory peering object (verbs get, list, watch, patch).")
	case m.settings.Mandatory:
		m.reportOnce(err, "The operator is paused: its mandatory peering object is missing.")
	case apierrors.IsForbidden(err):
		m.reportOnce(err, "The operator ignores other operators: it may not read the peering object (verbs get, list, watch, patch). With --standalone it does not try.")
	case m.objectExists:
		m.reportOnce(err, "The peering object was removed: the operator continues and ignores other operators.")
	case m.reports.Changed(topicObject, ""):
		m.logger.V(1).Info("There is no peering object: the operator ignores other operators.", "reason", err.Error())
	}
}

// reportOnce logs an error, unless it was the last one about the objects.
func (m *membership) reportOnce(err error, message string) {
	if m.reports.Changed(topicObject, message+err.Error()) {
		m.logger.Error(err, message)
	}
}

// reportForbidden logs that the operator meets its peers in one API group and may not do so
// in another one. Without the permissions it cannot know whether it has peers there.
func (m *membership) reportForbidden() {
	for group, v := range m.views {
		if apierrors.IsForbidden(v.missing) && m.reports.Changed(topicForbidden+group, v.missing.Error()) {
			m.logger.Info("The operator ignores other operators in this API group: it may not read the peering object there (verbs get, list, watch, patch).", "group", group, "reason", v.missing.Error())
		}
	}
}

func (m *membership) logDecision(d, before Decision) {
	switch {
	case d.Reason == ReasonHigherPriority:
		m.logger.Info("The operator is paused by operators of a higher priority.", m.pauseValues(d)...)
	case d.Reason == ReasonSamePriority:
		m.logger.Error(errSamePriority, "The operator is paused.", m.pauseValues(d)...)
	case !d.Paused && before.Paused:
		m.logger.Info("The operator resumes: no other operator pauses it.")
	}
}

// pauseValues returns what a line about a pause says of the peers. Entries that never expire pause
// the operator until a person removes them.
func (m *membership) pauseValues(d Decision) []any {
	values := []any{"priority", m.settings.Priority, "peers", d.Peers}
	if len(d.Endless) > 0 {
		values = append(values, "neverExpire", d.Endless,
			"remedy", "These entries have no lastseen. Remove those whose operators are gone: set them to null in the status of the peering object.")
	}
	return values
}
