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

	"github.com/kopf-go/kopf/pkg/cli/inspect"
	"github.com/kopf-go/kopf/pkg/peering"
)

// RunningError means that an operator runs, or has run until a moment ago.
type RunningError struct{ Signs []string }

func (e *RunningError) Error() string {
	return fmt.Sprintf("an operator still runs, and would handle released objects as new ones; stop it first, and wait until its entries expire: %s", strings.Join(e.Signs, "; "))
}

// margin covers clocks that differ: an expired lease or entry counts for a while.
const margin = time.Minute

// checkStopped returns a *RunningError if there are signs of a running operator: a lease that is
// held, or a peer that is alive.
func (r *Releaser) checkStopped(ctx context.Context) error {
	leases, err := r.heldLeases(ctx)
	if err != nil {
		return fmt.Errorf("it is unknown whether an operator runs, because its lease %q cannot be read: %w", r.Settings.Replicas.LeaseName, err)
	}
	peers, err := r.alivePeers(ctx)
	if err != nil {
		return fmt.Errorf("it is unknown whether an operator runs, because the peering %q cannot be read: %w", r.Settings.Peering.Name, err)
	}
	if signs := slices.Concat(leases, peers); len(signs) > 0 {
		return &RunningError{signs}
	}
	return nil
}

// heldLeases describes the leases of the operator that are held. It looks for them everywhere,
// also without leader election in the settings, because that is often a flag of the deployment.
func (r *Releaser) heldLeases(ctx context.Context) ([]string, error) {
	found, err := named(ctx, r.reading.Resource(coordinationv1.SchemeGroupVersion.WithResource("leases")), r.LeaseNamespace, r.Settings.Replicas.LeaseName)
	if err != nil {
		return nil, err
	}
	var held []string
	for _, each := range found {
		lease := &coordinationv1.Lease{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(each.Object, lease); err != nil {
			return nil, err
		}
		if s := lease.Spec; s.HolderIdentity != nil && *s.HolderIdentity != "" && s.RenewTime != nil {
			duration := r.Settings.Replicas.LeaseDuration
			if s.LeaseDurationSeconds != nil {
				duration = time.Duration(*s.LeaseDurationSeconds) * time.Second
			}
			if until := s.RenewTime.Add(duration + margin); time.Now().Before(until) {
				held = append(held, fmt.Sprintf("%s holds the lease %s/%s, which counts until %s", *s.HolderIdentity, lease.Namespace, lease.Name, until.UTC().Format(time.RFC3339)))
			}
		}
	}
	return held, nil
}

// named returns the objects with a name: in a namespace, or in all if it is empty.
func named(ctx context.Context, all dynamic.NamespaceableResourceInterface, namespace, name string) ([]unstructured.Unstructured, error) {
	var from dynamic.ResourceInterface = all
	if namespace != "" {
		from = all.Namespace(namespace)
	}
	var found []unstructured.Unstructured
	options := metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()}
	err := inspect.EachPage(ctx, from, options, func(items []unstructured.Unstructured) error {
		found = append(found, items...)
		return nil
	})
	if apierrors.IsNotFound(err) { // not served
		return nil, nil
	}
	return found, err
}

// alivePeers describes the entries of the peering that are alive, also those of a freeze: frozen
// operators continue afterwards.
func (r *Releaser) alivePeers(ctx context.Context) ([]string, error) {
	if r.Settings.Peering.Standalone {
		return nil, nil
	}
	var alive []string
	for _, resource := range r.served.Resources {
		isPeering := resource.Plural == "clusterkopfpeerings" || resource.Plural == "kopfpeerings"
		if !isPeering || resource.Group != "kopf.dev" && resource.Group != "zalando.org" {
			continue
		}
		namespace := ""
		if resource.Namespaced && len(r.Settings.Peering.Namespaces) == 0 {
			namespace = r.Namespace
		}
		found, err := named(ctx, r.reading.Resource(resource.GVR()), namespace, r.Settings.Peering.Name)
		if err != nil {
			return nil, err
		}
		for _, each := range found {
			alive = append(alive, aliveIn(&each)...)
		}
	}
	return alive, nil
}

func aliveIn(object *unstructured.Unstructured) []string {
	status, _ := object.Object["status"].(map[string]any)
	records, _ := peering.Parse(status)
	var alive []string
	for _, identity := range slices.Sorted(maps.Keys(records)) {
		if !records[identity].IsDead(time.Now().Add(-margin)) {
			where, _ := json.Marshal(strings.TrimPrefix(object.GetNamespace()+"/"+object.GetName(), "/"))
			alive = append(alive, fmt.Sprintf("%s has an entry in the %s %s", identity, object.GetKind(), where))
		}
	}
	return alive
}
