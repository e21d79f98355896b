package rbac

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kopf-go/kopf/internal/conversion"
	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/internal/registry"
	"github.com/kopf-go/kopf/pkg/model/selector"
	"github.com/kopf-go/kopf/pkg/reconcile/discovery"
	"github.com/kopf-go/kopf/pkg/settings"
)

// Input contains everything that permissions are derived from.
type Input struct {
	// Handlers are the handlers of objects; Needs is what they do with a client.
	Handlers registry.Handlers
	Needs    []registry.Need
	// Conversions are those of objects between versions.
	Conversions conversion.Set
	Settings    settings.Settings
	// Snapshot has the resources that the cluster serves.
	Snapshot discovery.Snapshot
	// Namespace is where the operator runs. It is used if the settings name no namespace for the
	// lease. Default: OperatorNamespace.
	Namespace string
}

// OperatorNamespace stands for the namespace of the operator, if that is unknown.
const OperatorNamespace = "OPERATOR-NAMESPACE"

// servedReason begins the reason of the rule for handled objects.
const servedReason = "The handled objects"

// derivation derives rules.
type derivation struct {
	Input

	roles    roles
	problems []error
}

// Derive returns the roles that the operator needs, that of the cluster first, and what could
// not be derived: selectors that select nothing now.
func Derive(in Input) ([]Role, []error) {
	in.Settings = in.Settings.WithDefaults()
	if in.Namespace == "" {
		in.Namespace = OperatorNamespace
	}
	d := &derivation{Input: in}
	if problem := in.Handlers.CheckName(in.Settings.Name); problem != nil {
		d.problems = append(d.problems, fmt.Errorf("the name of the operator, which names the roles and the lease: %w", problem))
	}
	d.addServed()
	d.addNeeds()
	d.addEnsured()
	d.addConditions()
	d.addScanning()
	d.addPeering()
	d.addReplicas()
	d.addAdmission()
	d.addConversions()
	d.addMetrics()
	d.addPage()
	return d.roles.sorted(), d.problems
}

// add adds a rule where the objects of the resource are served.
func (d *derivation) add(r selector.Resource, suffix string, verbs []string, reason string) {
	for _, namespace := range d.namespaces(r.Namespaced) {
		d.roles.add(namespace, Rule{Group: r.Group, Resources: []string{r.Plural + suffix}, Verbs: verbs, Reason: reason})
	}
}

// namespaces returns the namespaces in which objects are served: "" for all. The namespaces of a
// pattern are not known.
func (d *derivation) namespaces(namespaced bool) []string {
	scope := selector.Namespaces(d.Settings.Scope.Namespaces)
	if !namespaced || len(scope) == 0 || len(scope.Patterns()) > 0 {
		return []string{""}
	}
	return scope.Names()
}

// addServed adds the rules for the objects of handlers.
func (d *derivation) addServed() {
	watched := d.Handlers.Where(func(h *handler.Declaration) bool { return !h.Kind.IsAdmission() })
	resolution := discovery.Resolve(watched.Selectors(), d.Snapshot)
	d.problems = append(d.problems, resolution.Warnings...)
	for _, found := range resolution.Resources {
		r := found.Resource
		own := watched.Where(func(h *handler.Declaration) bool { return slices.Contains(found.Selectors, h.Selector) })
		handled := own.Where(func(h *handler.Declaration) bool {
			return h.Kind.IsChange() || h.Kind.IsBackground() || h.Kind.IsTriggered() || h.Kind == handler.OnEvent
		})
		later := d.later(found.Selectors)
		if len(handled) == 0 {
			verbs := []string{"list", "watch"}
			if d.Settings.Page.Address != "" { // it shows single ones
				verbs = append(verbs, "get")
			}
			d.add(r, "", verbs, "Objects that are indexed, or children of others: "+by(own, found.Selectors)+later)
			continue
		}
		d.add(r, "", []string{"get", "list", "watch", "patch"}, servedReason+", with the operator's records on them: "+by(handled, nil)+later)
		if r.Status {
			d.add(r, "/status", []string{"patch"}, "The results and the status of handlers: "+by(handled, nil)+later)
		}
		d.addEvents(r)
	}
}

// addEvents adds the rule for events about objects of a resource.
func (d *derivation) addEvents(r selector.Resource) {
	if d.Settings.Posting.Disabled {
		return
	}
	namespaces := d.namespaces(true)
	if !r.Namespaced && namespaces[0] != "" {
		namespaces = []string{"default"}
	}
	for _, namespace := range namespaces {
		d.roles.add(namespace, Rule{Resources: []string{"events"}, Verbs: []string{"create", "patch"}, Reason: "Events about the objects, as kubectl describe shows them."})
	}
}

// later says that a new definition can need another rule.
func (d *derivation) later(selectors []selector.Selector) string {
	for _, sel := range selectors {
		if !sel.Specific() {
			return fmt.Sprintf(" The selector %s can select others when definitions are installed: print the roles again then.", sel)
		}
	}
	return ""
}

// by lists handlers, or selectors if there are none.
func by(handlers registry.Handlers, selectors []selector.Selector) string {
	var names []string
	for _, h := range handlers {
		name := fmt.Sprintf("%s (%s)", h.ID, h.Kind)
		if h.Ensures != nil { // one handler with several declarations
			name = "kopf.Ensure " + handler.ReportedID(h)
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		for _, sel := range selectors {
			names = append(names, sel.String())
		}
	}
	const most = 5
	if len(names) > most {
		names = append(names[:most], fmt.Sprintf("%d others", len(names)-most))
	}
	return strings.Join(names, ", ") + "."
}

// addNeeds adds what handlers do with a client.
func (d *derivation) addNeeds() {
	for _, need := range d.Needs {
		found, err := need.Selector.Resolve(d.Snapshot.Resources)
		if err != nil || len(found) == 0 {
			d.problems = append(d.problems, fmt.Errorf("%s: kopf.Needs: %s is not served by the cluster: %w", need.DeclaredAt, need.Selector, err))
			continue
		}
		plain, sub := need.Divided()
		reason := "Handlers use it with a client, as kopf.Needs declares at " + need.DeclaredAt + "." + d.later([]selector.Selector{need.Selector})
		for _, r := range found {
			if len(plain) > 0 {
				d.add(r, "", plain, reason)
			}
			for name, verbs := range sub {
				d.add(r, "/"+name, verbs, reason)
			}
		}
	}
}
