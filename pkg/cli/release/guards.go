package release

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"

	"github.com/kopf-go/kopf/pkg/inspect"
	"github.com/kopf-go/kopf/pkg/internal/plural"
	"github.com/kopf-go/kopf/pkg/peering"
	"github.com/kopf-go/kopf/pkg/settings"
	"github.com/kopf-go/kopf/pkg/shards/ring"
)

// RunningError means that an operator runs, or has run until a moment ago.
type RunningError struct{ Signs []string }

func (e *RunningError) Error() string {
	return fmt.Sprintf("an operator still runs, and would handle released objects as new ones; stop it first, and wait until its entries expire: %s", strings.Join(e.Signs, "; "))
}

// margin covers clocks that differ: an expired lease or entry counts for a while.
const margin = time.Minute

// UnknownError means that nothing shows whether the operator is stopped.
type UnknownError struct{ Reasons []string }

func (e *UnknownError) Error() string {
	return fmt.Sprintf("it is unknown whether the operator runs, and a running one would handle released objects as new ones: %s. Stop the operator, and confirm that with --operator-stopped; if it has another lease, such as that of a manager, whose name is the LeaderElectionID, also add --lease-name", strings.Join(e.Reasons, "; "))
}

// sign is a lease that is held, or an entry of a peering that is alive.
type sign struct {
	holder, place string
	text          string
}

func (s sign) key() string { return s.holder + " " + s.place }

// signs are what the leases and the peerings say about the operator.
type signs struct {
	// running are the signs of an operator for the same objects. possible are those of one that can
	// be another operator.
	running, possible []sign
	// isStopped is set if there is a lease or a peering of the operator without an operator in it, and
	// the operator does nothing without it.
	isStopped bool
	// unknown says why a lease or a peering proves nothing.
	unknown []string
}

// texts describes signs.
func texts(all []sign) []string {
	var described []string
	for _, one := range all {
		described = append(described, one.text)
	}
	return described
}

// checkBefore returns a *RunningError if an operator runs for certain. It returns an *UnknownError if
// that is possible, or if nothing shows that it is stopped, unless the options confirm that it is.
func (r *Releaser) checkBefore(ctx context.Context) error {
	s, err := r.findSigns(ctx)
	switch {
	case err != nil:
		return err
	case !r.OperatorStopped && (!s.isStopped || len(s.possible) > 0):
		return &UnknownError{slices.Concat(texts(s.possible), s.unknown)}
	}
	r.confirmed = map[string]bool{}
	for _, one := range s.possible {
		r.confirmed[one.key()] = true
	}
	return nil
}

// checkStopped returns a *RunningError if an operator has started since checkBefore.
func (r *Releaser) checkStopped(ctx context.Context) error {
	s, err := r.findSigns(ctx)
	if err != nil {
		return err
	}
	started := slices.DeleteFunc(s.possible, func(one sign) bool { return r.confirmed[one.key()] })
	if len(started) > 0 {
		return &RunningError{texts(started)}
	}
	return nil
}

// findSigns looks at the lease and the peering. It returns a *RunningError if an operator runs.
func (r *Releaser) findSigns(ctx context.Context) (*signs, error) {
	s := &signs{}
	r.places = nil
	if err := r.lookAtLeases(ctx, s); err != nil {
		return nil, fmt.Errorf("it is unknown whether an operator runs, because its lease %q cannot be read: %w", r.Settings.Replicas.LeaseName, err)
	}
	if err := r.lookAtPeerings(ctx, s); err != nil {
		return nil, fmt.Errorf("it is unknown whether an operator runs, because the peering %q cannot be read: %w", r.Settings.Peering.Name, err)
	}
	if len(s.running) > 0 {
		return nil, &RunningError{texts(s.running)}
	}
	return s, nil
}

// hasOwnLease reports whether the lease has a name of the operator: others can have the default one.
func (r *Releaser) hasOwnLease() bool {
	return r.LeaseName != "" || r.LeaseNamespace != "" || r.Settings.Replicas.LeaseName != settings.DefaultLeaseName
}

// hasOwnPeering reports whether the peering is for operators of the same objects: others can be in the
// default one.
func (r *Releaser) hasOwnPeering() bool {
	p := r.Settings.Peering
	return r.Peering != "" || p.Mandatory || p.Name != settings.DefaultPeeringName
}

// lookAtLeases looks for leases of the operator that are held: that of its leader, or those of its replicas and shards. It
// looks for them everywhere, also if the settings need none, because a flag of the deployment often does.
func (r *Releaser) lookAtLeases(ctx context.Context, s *signs) error {
	replicas := r.Settings.Replicas
	api := r.reading.Resource(coordinationv1.SchemeGroupVersion.WithResource("leases"))
	found, err := named(ctx, api, r.LeaseNamespace, replicas.LeaseName)
	if err != nil {
		return err
	}
	sharing, err := find(ctx, api, r.LeaseNamespace, metav1.ListOptions{LabelSelector: ring.Labels(replicas.LeaseName).String()})
	if err != nil {
		return err
	}
	for _, each := range found {
		r.places = append(r.places, r.placeOf(&each, "lease", r.hasOwnLease()))
	}
	leases := map[string]map[string]coordinationv1.Lease{} // by namespaces and names
	for _, each := range slices.Concat(found, sharing) {
		var lease coordinationv1.Lease
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(each.Object, &lease); err != nil {
			return err
		}
		if leases[lease.Namespace] == nil {
			leases[lease.Namespace] = map[string]coordinationv1.Lease{}
		}
		leases[lease.Namespace][lease.Name] = lease
	}
	isHeld := false
	for _, namespace := range slices.Sorted(maps.Keys(leases)) {
		all := ring.Sort(replicas.LeaseName, slices.Collect(maps.Values(leases[namespace])), replicas.LeaseDuration)
		if others := len(all.Members) + len(all.Shards); others > 0 {
			r.places = append(r.places, fmt.Sprintf("The %s of the replicas and the shards of %s/%s.", plural.Of(others, "lease", "leases"), namespace, replicas.LeaseName))
		}
		for _, one := range heldIn(namespace, all) {
			s.add(one, r.hasOwnLease())
			isHeld = true
		}
	}
	s.conclude(evidence{
		empty: "no operator holds", what: fmt.Sprintf("lease %q", replicas.LeaseName),
		exists: len(leases) > 0, isUsed: isHeld, isOwn: r.hasOwnLease(), isNeeded: replicas.LeaderElection || replicas.Shards > 0,
		unneeded: "an operator without leader election and without shards holds none, and the settings do not say that this one has either (Settings.Replicas.LeaderElection, Settings.Replicas.Shards)",
	})
	return nil
}

// heldIn returns the signs in the leases in a namespace: one for the lease of the operator, and one for each replica that holds
// others. Shards move, so the place of the latter does not depend on them.
func heldIn(namespace string, all ring.Leases) (held []sign) {
	counts := func(l ring.Lease) bool { return l.IsHeld(time.Now().Add(-margin)) }
	until := func(l ring.Lease) string { return l.Until.Add(margin).UTC().Format(time.RFC3339) }
	if gate := all.Gate; counts(gate) {
		holder := gate.Holder
		if !all.Division.IsZero() {
			holder = "an operator with " + holder
		}
		place := fmt.Sprintf("the lease %s/%s", namespace, gate.Name)
		held = append(held, sign{gate.Holder, place, fmt.Sprintf("%s holds %s, which counts until %s", holder, place, until(gate))})
	}
	byHolder := map[string][]ring.Lease{}
	for _, lease := range slices.Concat(all.Members, slices.Collect(maps.Values(all.Shards))) {
		if counts(lease) {
			byHolder[lease.Holder] = append(byHolder[lease.Holder], lease)
		}
	}
	for _, holder := range slices.Sorted(maps.Keys(byHolder)) {
		leases := byHolder[holder]
		slices.SortFunc(leases, func(a, b ring.Lease) int { return strings.Compare(a.Name, b.Name) })
		last := slices.MaxFunc(leases, func(a, b ring.Lease) int { return a.Until.Compare(b.Until) })
		text := fmt.Sprintf("%s holds the lease %s/%s, which counts until %s", holder, namespace, leases[0].Name, until(last))
		if others := len(leases) - 1; others > 0 {
			text = fmt.Sprintf("%s holds the lease %s/%s and %s, which count until %s", holder, namespace, leases[0].Name, plural.Of(others, "other", "others"), until(last))
		}
		held = append(held, sign{holder, "the leases of replicas in " + namespace, text})
	}
	return held
}

// placeOf names a lease or a peering object that exists.
func (r *Releaser) placeOf(of *unstructured.Unstructured, kind string, isOwn bool) string {
	defaultName := ""
	if !isOwn {
		defaultName = ", which has the default name, so others can use it, too"
	}
	return fmt.Sprintf("The %s %s%s.", kind, nameOf(of), defaultName)
}

// add adds a sign.
func (s *signs) add(one sign, isCertain bool) {
	if isCertain {
		s.running = append(s.running, one)
		return
	}
	one.text += ", but that has the default name, so it can be another operator"
	s.possible = append(s.possible, one)
}

// evidence is a lease or a peering in which the operator can be.
type evidence struct {
	empty, what string // such as: no operator is in, peering "default"

	exists, isUsed, isOwn bool
	// isNeeded is set if the settings say that the operator does nothing without it. If they do not,
	// unneeded says why it proves nothing.
	isNeeded bool
	unneeded string
}

// conclude records what a lease or a peering without a sign of an operator shows. One with the default
// name can be that of other operators alone. One that the operator can do without can be left from an
// earlier run, with other flags.
func (s *signs) conclude(e evidence) {
	switch {
	case e.isUsed:
	case !e.exists:
		s.unknown = append(s.unknown, "there is no "+e.what)
	case !e.isOwn:
		s.unknown = append(s.unknown, e.empty+" the "+e.what+", but that is the default name, so it can be that of others")
	case !e.isNeeded:
		s.unknown = append(s.unknown, e.empty+" the "+e.what+", but "+e.unneeded)
	default:
		s.isStopped = true
	}
}

// named returns the objects with a name: in a namespace, or in all if it is empty.
func named(ctx context.Context, all dynamic.NamespaceableResourceInterface, namespace, name string) ([]unstructured.Unstructured, error) {
	return find(ctx, all, namespace, metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()})
}

// find returns selected objects: in a namespace, or in all if it is empty.
func find(ctx context.Context, all dynamic.NamespaceableResourceInterface, namespace string, options metav1.ListOptions) ([]unstructured.Unstructured, error) {
	var from dynamic.ResourceInterface = all
	if namespace != "" {
		from = all.Namespace(namespace)
	}
	var found []unstructured.Unstructured
	err := inspect.EachPage(ctx, from, options, func(items []unstructured.Unstructured) error {
		found = append(found, items...)
		return nil
	})
	if apierrors.IsNotFound(err) { // not served
		return nil, nil
	}
	return found, err
}

// lookAtPeerings looks for entries of operators in the peering that are alive. Those of a freeze are
// none: a frozen operator has its own entry.
func (r *Releaser) lookAtPeerings(ctx context.Context, s *signs) error {
	wanted := r.Settings.Peering
	if wanted.Standalone {
		s.unknown = append(s.unknown, "it ignores peerings (settings.Peering.Standalone)")
		return nil
	}
	for down := range r.served.Failed {
		if down.Group == "kopf.dev" || down.Group == "zalando.org" {
			s.unknown = append(s.unknown, "the API group of peerings is unavailable: "+down.String())
		}
	}
	exists := false
	isUsed := false
	for _, resource := range r.served.Resources {
		isPeering := resource.Plural == "clusterkopfpeerings" || resource.Plural == "kopfpeerings"
		if !isPeering || resource.Group != "kopf.dev" && resource.Group != "zalando.org" {
			continue
		}
		namespace := ""
		if resource.Namespaced && len(wanted.Namespaces) == 0 {
			namespace = r.Namespace
		}
		found, err := named(ctx, r.reading.Resource(resource.GVR()), namespace, wanted.Name)
		if err != nil {
			return err
		}
		for _, each := range found {
			r.places = append(r.places, r.placeOf(&each, each.GetKind(), r.hasOwnPeering()))
			exists = true
			isUsed = r.addPeers(s, &each) || isUsed
		}
	}
	s.conclude(evidence{
		empty: "no operator is in", what: fmt.Sprintf("peering %q", wanted.Name),
		exists: exists, isUsed: isUsed, isOwn: r.hasOwnPeering(), isNeeded: wanted.Mandatory,
		unneeded: "an operator with --standalone is in none, and the settings do not say that this one needs it (Settings.Peering.Mandatory)",
	})
	return nil
}

// addPeers adds the operators in a peering object, and reports whether there are some.
func (r *Releaser) addPeers(s *signs, object *unstructured.Unstructured) (found bool) {
	status, _ := object.Object["status"].(map[string]any)
	records, _ := peering.Parse(status)
	name, _ := json.Marshal(strings.TrimPrefix(object.GetNamespace()+"/"+object.GetName(), "/"))
	place := fmt.Sprintf("the %s %s", object.GetKind(), name)
	for _, identity := range slices.Sorted(maps.Keys(records)) {
		record := records[identity]
		isOwn := identity == r.Settings.Peering.Identity
		if record.IsDead(time.Now().Add(-margin)) || record.IsFreeze(identity) && !isOwn {
			continue
		}
		s.add(sign{identity, place, identity + " has an entry in " + place}, isOwn || r.isOwnLease(record.Lease) || r.hasOwnPeering())
		found = true
	}
	return found
}

// isOwnLease reports whether the lease in an entry of a peering, such as operators/mine, is certainly that of the operator.
func (r *Releaser) isOwnLease(lease string) bool {
	namespace, name, _ := strings.Cut(lease, "/")
	return name == r.Settings.Replicas.LeaseName && (r.LeaseNamespace == "" || r.LeaseNamespace == namespace) && r.hasOwnLease()
}
