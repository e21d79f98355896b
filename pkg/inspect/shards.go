package inspect

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"

	"github.com/kopf-go/kopf/pkg/internal/plural"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/reconcile"
	"github.com/kopf-go/kopf/pkg/settings"
	"github.com/kopf-go/kopf/pkg/shards"
	"github.com/kopf-go/kopf/pkg/shards/ring"
)

// ShardList is the answer to which replica handles which shard.
type ShardList struct {
	// Lease is the namespace and the name of the lease that the replicas hold together.
	Lease string `json:"lease"`
	// Division is how they divide the objects. It is empty if the lease does not say it.
	Division string `json:"division,omitempty"`
	// State says as a sentence whether replicas with shards run.
	State    string         `json:"state"`
	Replicas []ShardReplica `json:"replicas"`
	Shards   []Shard        `json:"shards"`
	// Notes say what is unknown.
	Notes []string `json:"notes,omitempty"`

	namespace string
	now       time.Time
}

// ShardReplica is a replica that wants shards.
type ShardReplica struct {
	Replica string `json:"replica"`
	// Renewed is when it has renewed its lease, which expires at Until.
	Renewed time.Time `json:"renewed,omitzero"`
	Until   time.Time `json:"until,omitzero"`
	Expired bool      `json:"expired,omitempty"`
	// Shards are those whose leases it holds.
	Shards []int `json:"shards"`
	// Endpoint is where it has answered. Unanswered says why it has not.
	Endpoint   string `json:"endpoint,omitempty"`
	Unanswered string `json:"unanswered,omitempty"`
}

// Shard is a shard and its lease.
type Shard struct {
	Number int `json:"number"`
	// Holder is empty if the lease was released.
	Holder  string    `json:"holder,omitempty"`
	Since   time.Time `json:"since,omitzero"`
	Renewed time.Time `json:"renewed,omitzero"`
	Until   time.Time `json:"until,omitzero"`
	Expired bool      `json:"expired,omitempty"`
	// Assigned is the replica that should handle the shard. The holder gives the shard up if it is another one.
	Assigned string `json:"assigned,omitempty"`
	// Message says it as a sentence.
	Message string `json:"message"`
	// Now is what the holder does for the shard, if it was asked.
	Now *reconcile.ActiveShard `json:"now,omitempty"`

	isAsked bool // the holder
}

// Shards finds out which replica of the operator handles which shard. The names can be empty for those in the settings; the
// namespace is needed unless the settings have one.
func (c *Cluster) Shards(ctx context.Context, name, namespace string) (*ShardList, error) {
	s := c.Settings
	s.Replicas.LeaseName = cmp.Or(name, s.Replicas.LeaseName)
	s = s.WithDefaults()
	leases := c.leases(namespace)
	found, err := c.ringLeases(ctx, leases, s.Replicas)
	if err != nil {
		return nil, fmt.Errorf("the leases in the namespace %q cannot be read: %w", namespace, err)
	}
	list := shardsOf(found, namespace, s.Replicas, time.Now())
	if note := c.startupNote(); note != "" && found.Gate.Name == "" {
		list.Notes = append(list.Notes, note)
	}
	return list, nil
}

// leases returns the leases of a namespace.
func (c *Cluster) leases(namespace string) dynamic.ResourceInterface {
	return c.objects.Resource(coordinationv1.SchemeGroupVersion.WithResource("leases")).Namespace(namespace)
}

// ringLeases reads the leases of an operator.
func (c *Cluster) ringLeases(ctx context.Context, from dynamic.ResourceInterface, s settings.Replicas) (ring.Leases, error) {
	var all []coordinationv1.Lease
	add := func(u *unstructured.Unstructured) error {
		var lease coordinationv1.Lease
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &lease); err != nil {
			return err
		}
		all = append(all, lease)
		return nil
	}
	gate, err := from.Get(ctx, s.LeaseName, metav1.GetOptions{})
	if err == nil {
		err = add(gate)
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return ring.Leases{}, err
	}
	err = EachPage(ctx, from, metav1.ListOptions{LabelSelector: ring.Labels(s.LeaseName).String()}, func(items []unstructured.Unstructured) error {
		for i := range items {
			if items[i].GetName() == s.LeaseName {
				continue
			}
			if err := add(&items[i]); err != nil {
				return err
			}
		}
		return nil
	})
	return ring.Sort(s.LeaseName, all, s.LeaseDuration), err
}

// shardsOf says what the leases of an operator show.
func shardsOf(found ring.Leases, namespace string, s settings.Replicas, now time.Time) *ShardList {
	l := &ShardList{Lease: namespace + "/" + s.LeaseName, Replicas: []ShardReplica{}, Shards: []Shard{}, namespace: namespace, now: now}
	gate := found.Gate
	isShared := gate.IsHeld(now) && !found.Division.IsZero()
	if !found.Division.IsZero() {
		l.Division = found.Division.String()
	}
	switch {
	case gate.Name == "" && len(found.Members)+len(found.Shards) > 0:
		l.State = "The lease does not exist, although replicas or shards have leases: it was deleted. Replicas that run make it again, and handle no objects until then."
	case gate.Name == "":
		l.State = "The lease does not exist: no operator with shards or with leader election has run there. If it has another name or is in another namespace, give them to this command."
	case gate.Holder == "":
		l.State = "No operator holds the lease: none with shards or with leader election is running."
	case !gate.IsHeld(now):
		l.State = fmt.Sprintf("The lease of %s has expired: %s. No replica is running, or none can renew it.", gate.Holder, l.at(gate.Until))
	case isShared:
		l.State = fmt.Sprintf("The replicas divide the objects into %s. They have renewed the lease %s.", l.Division, l.ago(gate.Renewed))
	default:
		l.State = fmt.Sprintf("%s leads, by leader election: the operator has no shards.", gate.Holder)
	}
	wanted := shards.Division{Number: s.Shards, ByNamespace: s.ShardKey == settings.ShardByNamespace}
	if isShared && !wanted.IsZero() && wanted != found.Division {
		l.Notes = append(l.Notes, fmt.Sprintf("The settings that are known here say %s. A replica with these does not start while the others run: stop all of them first.", wanted))
	}

	numbers := found.Division.Number
	for number := range found.Shards {
		numbers = max(numbers, number+1)
	}
	assigned := make([]string, numbers)
	if isShared {
		copy(assigned, shards.Assign(found.Division.Number, found.LiveMembers(now)))
	}
	held := map[string]shards.Set{}
	for number := range numbers {
		lease := found.Shards[number]
		if lease.Holder == "" && number >= found.Division.Number { // of a former division
			continue
		}
		shard := Shard{Number: number, Holder: lease.Holder, Since: lease.Since, Renewed: lease.Renewed, Until: lease.Until, Expired: lease.Holder != "" && !lease.IsHeld(now), Assigned: assigned[number]}
		if shard.Holder == "" {
			shard.Since = time.Time{}
			shard.Renewed = time.Time{}
			shard.Until = time.Time{}
		}
		if lease.IsHeld(now) {
			held[lease.Holder] = held[lease.Holder].With(number)
		}
		l.Shards = append(l.Shards, shard)
	}
	for _, member := range found.Members {
		if member.Holder == "" {
			continue
		}
		l.Replicas = append(l.Replicas, ShardReplica{Replica: member.Holder, Renewed: member.Renewed, Until: member.Until, Expired: !member.IsHeld(now), Shards: numbersOf(held[member.Holder])})
		delete(held, member.Holder)
	}
	for holder, of := range held { // it stops, and wants no shards
		l.Replicas = append(l.Replicas, ShardReplica{Replica: holder, Shards: numbersOf(of)})
	}
	slices.SortFunc(l.Replicas, func(a, b ShardReplica) int { return strings.Compare(a.Replica, b.Replica) })
	l.describe()
	return l
}

// numbersOf returns the shards of a set, which can be empty, but not nil.
func numbersOf(set shards.Set) []int { return append([]int{}, set.Sorted()...) }

// at returns a time, and how far away it is.
func (l *ShardList) at(t time.Time) string { return (&subject{now: l.now}).at(t) }

// ago returns how far away a time is. The clocks of the replicas can be ahead.
func (l *ShardList) ago(t time.Time) string {
	return duration(max(0, l.now.Sub(t)).Round(time.Second)) + " ago"
}

// describe makes the sentences about the shards.
func (l *ShardList) describe() {
	for i := range l.Shards {
		l.Shards[i].Message = l.messageOf(&l.Shards[i])
	}
}

// messageOf says who handles a shard, and who should.
func (l *ShardList) messageOf(s *Shard) string {
	takes := ""
	if s.Assigned != "" {
		takes = ": " + s.Assigned + " takes it"
	}
	switch {
	case s.Holder == "":
		return "no replica holds it" + takes
	case s.Expired && s.Assigned != "":
		return fmt.Sprintf("the lease of %s has expired: %s; %s takes it", s.Holder, l.at(s.Until), s.Assigned)
	case s.Expired:
		return fmt.Sprintf("the lease of %s has expired: %s", s.Holder, l.at(s.Until))
	}
	message := fmt.Sprintf("%s since %s, renewed %s", s.Holder, s.Since.UTC().Format(time.RFC3339), l.ago(s.Renewed))
	now := s.Now
	moves := ""
	switch {
	case s.Assigned != "" && s.Assigned != s.Holder && l.isLeaving(s.Holder):
		moves = fmt.Sprintf("; it stops, and gives the shard up to %s", s.Assigned)
	case s.Assigned != "" && s.Assigned != s.Holder:
		moves = fmt.Sprintf("; %s should have the shard, and %s gives it up", s.Assigned, s.Holder)
	case now != nil && now.Leaving:
		moves = "; it stops, and gives the shard up"
	case now != nil && !now.Draining.IsZero():
		moves = "; it gives the shard up"
	}
	switch {
	case now == nil && s.isAsked:
		return message + moves + "; it says that it does not handle the shard"
	case now == nil:
		return message + moves
	case now.Lost:
		return message + moves + "; it has lost the lease, and cancels the handlers"
	case !now.Draining.IsZero():
		moves += fmt.Sprintf(", since %s; %s left", l.at(now.Draining), plural.Of(now.Left, "object is", "objects are"))
		for i, call := range now.Calls {
			with := ", "
			if i == 0 {
				with = ", and handlers run: "
			}
			name := strings.TrimPrefix(call.Namespace+"/"+call.Name, "/")
			moves += fmt.Sprintf("%s%s for %s %s since %s", with, call.Handler, call.Resource, name, l.at(call.Since))
		}
		return message + moves
	case !now.Handling:
		return message + moves + "; it has not seen the objects yet"
	default:
		return message + moves + "; " + plural.Of(now.Objects, "object", "objects")
	}
}

// isLeaving reports whether a replica wants no shards anymore.
func (l *ShardList) isLeaving(replica string) bool {
	return slices.ContainsFunc(l.Replicas, func(r ShardReplica) bool { return r.Replica == replica && r.Until.IsZero() })
}

// AskReplica asks a replica what it does for its shards, and adds that to the list. A failure is a part of the list.
func (l *ShardList) AskReplica(ctx context.Context, at Endpoint) {
	activity, err := at.Activity(ctx, object.Key{}, "")
	if err != nil {
		l.Notes = append(l.Notes, fmt.Sprintf("The replica at %s has not answered: %v.", at.URL, err))
		return
	}
	l.addActivity(at.URL, activity)
}

// addActivity adds what a replica does.
func (l *ShardList) addActivity(endpoint string, a *reconcile.Activity) {
	i := slices.IndexFunc(l.Replicas, func(r ShardReplica) bool { return r.Replica == a.Replica })
	switch {
	case a.Replica == "":
		l.Notes = append(l.Notes, fmt.Sprintf("The operator at %s has no shards.", endpoint))
		return
	case i < 0:
		l.Notes = append(l.Notes, fmt.Sprintf("The replica %s at %s has none of these leases: it belongs to another operator, or has just started or ended.", a.Replica, endpoint))
		return
	}
	l.Replicas[i].Endpoint = endpoint
	l.Replicas[i].Unanswered = ""
	for i := range l.Shards {
		s := &l.Shards[i]
		if s.Holder != a.Replica || s.Expired {
			continue
		}
		s.isAsked = true
		if j := slices.IndexFunc(a.Shards, func(one reconcile.ActiveShard) bool { return one.Number == s.Number }); j >= 0 {
			s.Now = &a.Shards[j]
		}
	}
	l.describe()
}

// Pods returns the pods of the replicas that run, with the ports of their metrics. It notes those that are not found.
func (c *Cluster) Pods(ctx context.Context, l *ShardList) (pods []Pod) {
	for i := range l.Replicas {
		r := &l.Replicas[i]
		if r.Expired {
			continue
		}
		pod, err := c.podOf(ctx, l.namespace, r.Replica, "the replica "+r.Replica)
		if err != nil {
			r.Unanswered = err.Error()
			continue
		}
		r.Unanswered = "it was not asked"
		pods = append(pods, pod)
	}
	return pods
}

// IsAsked reports whether a replica has answered.
func (l *ShardList) isAsked() bool {
	return slices.ContainsFunc(l.Replicas, func(r ShardReplica) bool { return r.Endpoint != "" })
}

// Text returns the answer for a person.
func (l *ShardList) Text(style Style) string {
	var b strings.Builder
	b.WriteString(l.Lease + "\n")
	style.Paragraph(&b, "  ", l.State)
	var replicas []string
	for _, r := range l.Replicas {
		replicas = append(replicas, l.replicaText(r))
	}
	style.List(&b, "Replicas", replicas)
	var lines []string
	for _, s := range l.Shards {
		lines = append(lines, fmt.Sprintf("%d: %s", s.Number, s.Message))
	}
	style.List(&b, "Shards", lines)
	notes := l.Notes
	if len(l.Shards) > 0 && !l.isAsked() {
		notes = append(slices.Clip(notes), "How many objects are in the shards, and what a shard that is given up waits for, only the replicas know: ask them by --running.")
	}
	style.List(&b, "Notes", notes)
	return b.String()
}

// replicaText describes a replica.
func (l *ShardList) replicaText(r ShardReplica) string {
	holds := "holds no shards"
	if len(r.Shards) > 0 {
		holds = fmt.Sprintf("holds %s: %s", plural.Of(len(r.Shards), "shard", "shards"), shards.SetOf(r.Shards...))
	}
	var text string
	switch {
	case r.Expired:
		text = fmt.Sprintf("%s has died, or cannot renew its lease, which has expired: %s", r.Replica, l.at(r.Until))
	case r.Until.IsZero():
		text = fmt.Sprintf("%s stops, and %s", r.Replica, holds)
	default:
		text = fmt.Sprintf("%s %s; renewed %s", r.Replica, holds, l.ago(r.Renewed))
	}
	if r.Unanswered != "" {
		text += "; it has not answered: " + r.Unanswered
	}
	return text
}
