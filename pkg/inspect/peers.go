package inspect

import (
	"cmp"
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
	// PausedBy are the peers that pause it, and Pauses those that it pauses. A freeze is not paused.
	PausedBy []string `json:"pausedBy,omitempty"`
	Pauses   []string `json:"pauses,omitempty"`
	// Freeze is set for an entry of a person, who pauses operators. Message is its reason, if it has
	// one.
	Freeze  bool   `json:"freeze,omitempty"`
	Message string `json:"message,omitempty"`

	isEqual bool          // those that pause it have its priority
	age     time.Duration // since it was renewed
}

// String says what the entry means.
func (p Peer) String() string {
	text := fmt.Sprintf("%s (priority %d)", p.Identity, p.Priority)
	switch {
	case p.Message != "":
		text = fmt.Sprintf("%s (priority %d, a freeze: %s)", p.Identity, p.Priority, p.Message)
	case p.Freeze:
		text = fmt.Sprintf("%s (priority %d, a freeze)", p.Identity, p.Priority)
	}
	switch {
	case p.Expired:
		return text + " has expired at " + p.Until.UTC().Format(time.RFC3339) + ", and pauses nothing"
	case p.Freeze:
		pauses := "pauses " + strings.Join(p.Pauses, ", ")
		if len(p.Pauses) == 0 {
			pauses = fmt.Sprintf("pauses no operator that has an entry: those of the priority %d or a lower one that join are paused", p.Priority)
		}
		return text + " " + pauses + " " + freezeEnds(p.Until)
	case p.isEqual:
		return text + " is paused by " + strings.Join(p.PausedBy, ", ") + ", because of the same priority: give them distinct ones by --priority"
	case len(p.PausedBy) > 0:
		return text + " is paused by " + strings.Join(p.PausedBy, ", ") + ", because of a higher priority"
	case len(p.Pauses) == 0:
		return text + fmt.Sprintf(" was active %s ago, and pauses no other", duration(p.age))
	default:
		return text + " pauses " + strings.Join(p.Pauses, ", ") + ", until " + p.Until.UTC().Format(time.RFC3339) + " unless it is renewed"
	}
}

// freezeEnds says what ends a freeze.
func freezeEnds(until time.Time) string {
	if until.IsZero() {
		return "until it is removed: it does not expire"
	}
	return "until " + until.UTC().Format(time.RFC3339) + ", or until kopf resume ends it"
}

// peersOf returns the entries of an object.
func peersOf(object string, records map[string]peering.Record, now time.Time) []Peer {
	var peers []Peer
	for _, identity := range slices.Sorted(maps.Keys(records)) {
		r := records[identity]
		decision := peering.Decide(records, identity, r.Priority, now)
		peer := Peer{
			Object: object, Identity: identity, Priority: r.Priority, Expired: r.IsDead(now), Freeze: r.IsFreeze(identity), Message: r.Message,
		}
		if !peer.Freeze {
			peer.PausedBy = decision.Peers
			peer.isEqual = decision.Reason == peering.ReasonSamePriority
		}
		if !r.LastSeen.IsZero() {
			peer.Until = r.Deadline(now)
			peer.age = now.Sub(r.LastSeen).Round(time.Second)
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
	Peering string `json:"peering"`
	// Objects are the peering objects in which the operator meets others.
	Objects []PeeringObject `json:"objects"`
	// Notes say what is unknown.
	Notes []string `json:"notes,omitempty"`
}

// PeeringObject is a peering object, which may not exist.
type PeeringObject struct {
	Object  string `json:"object"`
	Missing bool   `json:"missing,omitempty"`
	Peers   []Peer `json:"peers,omitempty"`
}

// Peers returns the entries of the peering objects that the operator uses, by its settings. A name
// and a namespace stand for its flags --peering and --namespace.
func (c *Cluster) Peers(ctx context.Context, name, namespace string) (*PeerList, error) {
	s := c.Settings.WithDefaults()
	s.Peering.Name = cmp.Or(name, s.Peering.Name)
	if namespace != "" {
		s.Scope.Namespaces = []string{namespace}
	}
	list := &PeerList{Peering: s.Peering.Name}
	targets, err := c.meetings(ctx, s)
	if err != nil {
		list.Notes = append(list.Notes, err.Error()+".")
	}
	for _, target := range targets {
		m, err := c.meet(ctx, target)
		if err != nil {
			return nil, err
		}
		list.Objects = append(list.Objects, PeeringObject{Object: m.object, Missing: m.missing != nil, Peers: m.peers()})
	}
	if s.Peering.Standalone && name == "" {
		list.Notes = append(list.Notes, "The operator ignores other operators, because Settings.Peering.Standalone is set.")
	}
	if len(targets) == 1 && targets[0].Namespace == "" && !s.Peering.ClusterWide && !c.IsRunning {
		list.Notes = append(list.Notes, "An operator with the flag --namespace uses the KopfPeering in that namespace: the command peers shows it with the same flag.")
	}
	return list, nil
}

// Text returns the answer for a person.
func (l *PeerList) Text(style Style) string {
	var b strings.Builder
	for _, object := range l.Objects {
		b.WriteString(object.Object + "\n")
		switch {
		case object.Missing:
			style.Paragraph(&b, "  - ", "The object does not exist: operators with the flag --peering pause until it does, and others do not see each other.")
		case len(object.Peers) == 0:
			style.Paragraph(&b, "  - ", "No operator has an entry: no operator pauses another one.")
		}
		for _, peer := range object.Peers {
			style.Paragraph(&b, "  - ", peer.String())
		}
	}
	style.List(&b, "Notes", l.Notes)
	return b.String()
}
