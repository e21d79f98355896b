package inspect

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/kopf-go/kopf/pkg/peering"
)

// Peer is an entry of a peering object.
type Peer struct {
	Object   string `json:"object"`
	Identity string `json:"identity"`
	Priority int    `json:"priority"`
	// Until is when it expires unless it is renewed; zero if it never does.
	Until   time.Time `json:"until,omitzero"`
	Expired bool      `json:"expired,omitempty"`
	// PausedBy are the peers that pause it, and Pauses those that it pauses.
	PausedBy []string `json:"pausedBy,omitempty"`
	Pauses   []string `json:"pauses,omitempty"`
	// Message is the reason of a freeze. Operators have none, and a freeze needs none.
	Message string `json:"message,omitempty"`

	isEqual bool // those that pause it have its priority
}

// String says what the entry means.
func (p Peer) String() string {
	text := fmt.Sprintf("%s (priority %d)", p.Identity, p.Priority)
	if p.Message != "" {
		text = fmt.Sprintf("%s (priority %d, a freeze: %s)", p.Identity, p.Priority, p.Message)
	}
	switch {
	case p.Expired:
		return text + " has expired at " + p.Until.UTC().Format(time.RFC3339) + ", and pauses nothing"
	case p.isEqual:
		return text + " is paused by " + strings.Join(p.PausedBy, ", ") + ", because of the same priority: give them distinct ones by --priority"
	case len(p.PausedBy) > 0:
		return text + " is paused by " + strings.Join(p.PausedBy, ", ") + ", because of a higher priority"
	case len(p.Pauses) == 0:
		return text + " is not paused, and pauses no other"
	case p.Until.IsZero():
		return text + " pauses " + strings.Join(p.Pauses, ", ") + " until it is removed: it does not expire"
	default:
		return text + " pauses " + strings.Join(p.Pauses, ", ") + ", until " + p.Until.UTC().Format(time.RFC3339) + " unless it is renewed"
	}
}

// holds says what the entry means for an operator with a priority. Which entry is that of the
// operator itself is unknown.
func (p Peer) holds(priority int, peers []Peer) []string {
	ends := "until it leaves: the entry does not expire"
	if !p.Until.IsZero() {
		ends = "until it leaves, or until " + p.Until.UTC().Format(time.RFC3339) + " without its renewal"
	}
	var equals []string
	for _, other := range peers {
		if other.Object == p.Object && other.Priority == priority && slices.Contains(p.PausedBy, other.Identity) {
			equals = append(equals, other.Identity)
		}
	}
	switch {
	case p.Priority > priority:
		text := fmt.Sprintf("%s in the %s has the priority %d, and pauses operators of the priority %d %s.", p.Identity, p.Object, p.Priority, priority, ends)
		if p.Message != "" {
			text += " Its message: " + p.Message
		}
		return []string{text}
	case p.Priority == priority && len(equals) > 0:
		return []string{fmt.Sprintf("%s in the %s has the same priority %d as the operator, and so has %s: they pause each other.", p.Identity, p.Object, priority, strings.Join(equals, ", "))}
	default:
		return nil
	}
}

// whoPauses adds the peers, and says what they mean for the handlers.
func (c *Cluster) whoPauses(ctx context.Context, namespace string, e *Explanation) []string {
	p := c.Settings.WithDefaults().Peering
	if p.Standalone {
		return nil
	}
	peers, err := c.Peers(ctx, p.Name, namespace)
	switch {
	case err != nil:
		e.Notes = append(e.Notes, fmt.Sprintf("It is unknown whether another operator pauses this one: %v.", err))
	case len(peers) == 0 && p.Mandatory:
		return []string{fmt.Sprintf("The operator pauses if the peering object %q does not exist, and it does not, neither for the cluster nor in the namespace of the object. Create it, or run the operator without --peering.", p.Name)}
	}
	e.Peers = peers
	var holds []string
	for _, peer := range peers {
		if !peer.Expired {
			holds = append(holds, peer.holds(p.Priority, peers)...)
		}
	}
	return holds
}

// Peers returns the entries of the peering objects with a name: of the cluster and, if they are
// not empty, of the namespaces.
func (c *Cluster) Peers(ctx context.Context, name string, namespaces ...string) ([]Peer, error) {
	var peers []Peer
	for _, namespace := range append([]string{""}, namespaces...) {
		if namespace == "" && len(peers) > 0 {
			continue
		}
		target := peering.Target{Name: name, Namespace: namespace}
		records, err := peering.Read(ctx, c.config, target)
		if peering.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		peers = append(peers, peersOf(target, records, time.Now())...)
	}
	return peers, nil
}

func peersOf(target peering.Target, records map[string]peering.Record, now time.Time) []Peer {
	object := fmt.Sprintf("ClusterKopfPeering %q", target.Name)
	if target.Namespace != "" {
		object = fmt.Sprintf("KopfPeering %q in the namespace %q", target.Name, target.Namespace)
	}
	var peers []Peer
	for _, identity := range slices.Sorted(maps.Keys(records)) {
		r := records[identity]
		decision := peering.Decide(records, identity, r.Priority, now)
		peer := Peer{
			Object: object, Identity: identity, Priority: r.Priority, Expired: r.IsDead(now), Message: r.Message,
			PausedBy: decision.Peers, isEqual: decision.Reason == peering.ReasonSamePriority,
		}
		if !r.LastSeen.IsZero() {
			peer.Until = r.Deadline(now)
		}
		peers = append(peers, peer)
	}
	for i := range peers {
		for _, other := range peers {
			if !other.Expired && slices.Contains(other.PausedBy, peers[i].Identity) {
				peers[i].Pauses = append(peers[i].Pauses, other.Identity)
			}
		}
	}
	return peers
}

// PeerList is the answer to who pauses whom.
type PeerList struct {
	Peering   string `json:"peering"`
	Namespace string `json:"namespace,omitempty"`
	Peers     []Peer `json:"peers"`
}

// Text returns the answer for a person.
func (l *PeerList) Text(style Style) string {
	var b strings.Builder
	if len(l.Peers) == 0 {
		style.Paragraph(&b, "", fmt.Sprintf("No operator has an entry in a peering object %q, neither in the cluster nor in the namespace %q: no operator pauses another one there.", l.Peering, l.Namespace))
		return b.String()
	}
	object := ""
	for _, peer := range l.Peers {
		if peer.Object != object {
			object = peer.Object
			b.WriteString(object + "\n")
		}
		style.Paragraph(&b, "  - ", peer.String())
	}
	return b.String()
}
