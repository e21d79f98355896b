package inspect

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kopf-go/kopf/pkg/model/selector"
	"github.com/kopf-go/kopf/pkg/peering"
	"github.com/kopf-go/kopf/pkg/settings"
)

// meeting is a peering object in which the operator meets others.
type meeting struct {
	peering.Target

	object  string // its kind and name, for a person
	missing error  // why it does not exist, or nil
	records map[string]peering.Record
	now     time.Time
}

// meetings returns the peering objects that an operator with the settings uses. With an error, some
// are unknown.
func (c *Cluster) meetings(ctx context.Context, s settings.Settings) ([]peering.Target, error) {
	namespaces, followsScope := peering.NamespacesOf(s)
	if !followsScope && len(namespaces) == 0 {
		return []peering.Target{{Name: s.Peering.Name}}, nil
	}
	var err error
	if scope := selector.Namespaces(s.Scope.Namespaces); followsScope && len(scope.Patterns()) > 0 {
		all := c.objects.Resource(corev1.SchemeGroupVersion.WithResource("namespaces"))
		err = each(ctx, all, metav1.ListOptions{}, func(u *unstructured.Unstructured) {
			if scope.Match(u.GetName(), u.GetLabels()) {
				namespaces = append(namespaces, u.GetName())
			}
		})
		if err != nil {
			err = fmt.Errorf("it is unknown which namespaces match %s, and whether other operators pause this one there: %w", strings.Join(scope.Patterns(), ", "), err)
		}
	}
	slices.Sort(namespaces)
	var targets []peering.Target
	for _, namespace := range slices.Compact(namespaces) {
		targets = append(targets, peering.Target{Name: s.Peering.Name, Namespace: namespace})
	}
	return targets, err
}

// meet reads a peering object.
func (c *Cluster) meet(ctx context.Context, target peering.Target) (meeting, error) {
	m := meeting{Target: target, object: fmt.Sprintf("ClusterKopfPeering %q", target.Name), now: time.Now()}
	if target.Namespace != "" {
		m.object = fmt.Sprintf("KopfPeering %q in the namespace %q", target.Name, target.Namespace)
	}
	records, err := peering.Read(ctx, c.config, target)
	if peering.IsNotFound(err) {
		m.missing = err
		err = nil
	}
	m.records = records
	return m, err
}

// peers returns the entries for a person.
func (m meeting) peers() []Peer { return peersOf(m.object, m.records, m.now) }

// whoPauses adds the peers, and says what they mean for the handlers.
func (c *Cluster) whoPauses(ctx context.Context, namespace string, e *Explanation) {
	s := c.Settings.WithDefaults()
	if s.Peering.Standalone {
		return
	}
	targets, err := c.meetings(ctx, s)
	e.addUnknown(err)
	for _, target := range targets {
		m, err := c.meet(ctx, target)
		e.addUnknown(err)
		e.Peers = append(e.Peers, m.peers()...)
		switch pauses := m.pauses(s.Peering, c.CommandLine); {
		case err != nil:
		case m.missing != nil && s.Peering.Mandatory:
			e.pauses = append(e.pauses, fmt.Sprintf("The operator pauses, because its peering object is mandatory: %v", m.missing))
		case m.isCertain(s.Peering):
			e.pauses = append(e.pauses, pauses...)
		default:
			e.mayPause = append(e.mayPause, pauses...)
		}
		if err == nil && m.missing == nil && len(m.records) == 0 {
			e.Notes = append(e.Notes, fmt.Sprintf("No operator has an entry in the %s: none that uses it is running.", m.object))
		}
	}
	if c.IsRunning { // its flags are known
		return
	}
	m, exists := c.meetInNamespace(ctx, targets, namespace)
	if !exists {
		return
	}
	e.Peers = append(e.Peers, m.peers()...)
	for _, text := range m.pauses(s.Peering, c.CommandLine) {
		e.mayPause = append(e.mayPause, "If the operator has the flag --namespace, it uses the "+m.object+": "+text)
	}
}

// addUnknown records that some entries are unknown.
func (e *Explanation) addUnknown(err error) {
	if err != nil {
		e.Notes = append(e.Notes, fmt.Sprintf("It is unknown whether another operator pauses this one: %v.", err))
	}
}

// own returns the identity and the priority of the operator. The identity is empty if it is unknown.
func (m meeting) own(p settings.Peering) (identity string, priority int) {
	identity = p.Identity
	if pod := os.Getenv("POD_ID"); identity == "" && m.isAlive(pod) { // the command runs in the pod
		identity = pod
	}
	if m.isAlive(identity) { // its priority can be that of a flag
		return identity, m.records[identity].Priority
	}
	return identity, p.Priority
}

func (m meeting) isAlive(identity string) bool {
	r, known := m.records[identity]
	return known && !r.IsDead(m.now)
}

// isCertain reports whether the operator is paused, if it is, whichever entry belongs to it. An operator without an
// entry can have flags because of which it does not use the object.
func (m meeting) isCertain(p settings.Peering) bool {
	if identity, _ := m.own(p); identity != "" {
		return true
	}
	hasOwn := false
	for identity, r := range m.records {
		if !m.canBeOwn(identity) {
			continue
		}
		hasOwn = true
		if !peering.Decide(m.records, identity, r.Priority, m.now).Paused {
			return false
		}
	}
	return hasOwn || p.Mandatory
}

// canBeOwn reports whether the entry can belong to the operator, whose identity is unknown: it is
// alive, and not from a person.
func (m meeting) canBeOwn(identity string) bool {
	return m.isAlive(identity) && !m.records[identity].IsFreeze(identity)
}

// pauses describes the entries that pause the operator.
func (m meeting) pauses(p settings.Peering, commands CommandLine) []string {
	own, priority := m.own(p)
	d := peering.Decide(m.records, own, priority, m.now)
	var texts, equals []string
	for _, peer := range d.Peers {
		if d.Reason == peering.ReasonSamePriority && m.canBeOwn(peer) {
			equals = append(equals, peer)
		} else {
			texts = append(texts, m.pause(peer, priority, own == "", commands))
		}
	}
	if own != "" && len(equals) > 0 {
		equals = append(equals, "the operator")
	}
	if len(equals) < 2 { // a single one is most likely that of the operator
		return texts
	}
	// An operator that was killed leaves its entry behind.
	first := ""
	for _, peer := range equals {
		if _, known := m.records[peer]; known && (first == "" || m.records[peer].LastSeen.Before(m.records[first].LastSeen)) {
			first = peer
		}
	}
	killed := ""
	if first != "" {
		killed = fmt.Sprintf(" If %s was killed, that ends at %s without your help.", first, (&subject{now: m.now}).at(m.records[first].Deadline(m.now)))
	}
	return append(texts, fmt.Sprintf("In the %s, %s have the same priority %d, and pause each other: give them distinct ones by --priority.%s", m.object, strings.Join(equals, " and "), priority, killed))
}

// pause describes an entry that pauses the operator.
func (m meeting) pause(peer string, priority int, isUnknown bool, commands CommandLine) string {
	r := m.records[peer]
	ends := "until it leaves, or until " + r.Deadline(m.now).UTC().Format(time.RFC3339) + " without its renewal"
	switch {
	case r.LastSeen.IsZero():
		ends = freezeEnds(time.Time{})
	case r.IsFreeze(peer):
		ends = freezeEnds(r.Deadline(m.now))
	}
	text := fmt.Sprintf("%s in the %s has the priority %d, and pauses operators of the priority %d %s.", peer, m.object, r.Priority, priority, ends)
	switch {
	case m.canBeOwn(peer) && isUnknown && !peering.Decide(m.records, peer, r.Priority, m.now).Paused:
		return text + fmt.Sprintf(" If that is this operator, run with --priority %d, it is active.", r.Priority)
	case m.canBeOwn(peer):
		return text
	case r.Message != "":
		text += fmt.Sprintf(" Its message: %q.", r.Message)
	}
	unused := " No operator has an entry: one with --standalone, or with --namespace, does not use the object."
	for identity := range m.records {
		if m.canBeOwn(identity) {
			unused = ""
		}
	}
	return text + unused + " To end that: " + commands.Resume(m.Target, peer)
}

// meetInNamespace reads the peering object that the operator uses instead if it has the flag --namespace.
func (c *Cluster) meetInNamespace(ctx context.Context, targets []peering.Target, namespace string) (m meeting, exists bool) {
	s := c.Settings.WithDefaults()
	isOfCluster := len(targets) == 1 && targets[0].Namespace == ""
	if !isOfCluster || s.Peering.ClusterWide || namespace == "" {
		return m, false
	}
	m, err := c.meet(ctx, peering.Target{Name: s.Peering.Name, Namespace: namespace})
	return m, err == nil // otherwise, it is not certain that the operator uses it
}

// freezes are the freezes that pause an operator, and those that do so depending on its flags.
type freezes struct{ certain, possible []string }

// freezes returns those that pause an operator that handles objects of a namespace. What cannot be read is
// left out: explain says so.
func (c *Cluster) freezes(ctx context.Context, namespace string) (found freezes) {
	s := c.Settings.WithDefaults()
	if s.Peering.Standalone {
		return found
	}
	targets, _ := c.meetings(ctx, s)
	for _, target := range targets {
		switch m, err := c.meet(ctx, target); {
		case err != nil:
		case m.isCertain(s.Peering):
			found.certain = append(found.certain, m.freezes(s.Peering)...)
		default:
			found.possible = append(found.possible, m.freezes(s.Peering)...)
		}
	}
	if m, exists := c.meetInNamespace(ctx, targets, namespace); exists {
		found.possible = append(found.possible, m.freezes(s.Peering)...)
	}
	return found
}

// freezes returns the freezes that pause the operator.
func (m meeting) freezes(p settings.Peering) []string {
	own, priority := m.own(p)
	peers := peering.Decide(m.records, own, priority, m.now).Peers
	return slices.DeleteFunc(peers, func(peer string) bool { return !m.records[peer].IsFreeze(peer) })
}
