package inspect

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/pkg/model/cause"
	"github.com/kopf-go/kopf/pkg/reconcile/discovery"
	"github.com/kopf-go/kopf/pkg/reconcile/inspection"
)

// Plan says what an operator with the handlers of a program would do with all objects.
type Plan struct {
	Resources []ResourcePlan `json:"resources"`
	// Refusals say why no operator of the program starts. PossibleRefusals depend on what is unknown here.
	Refusals         []string `json:"refusals,omitempty"`
	PossibleRefusals []string `json:"possibleRefusals,omitempty"`
	Notes            []string `json:"notes,omitempty"`

	refuses bool
}

// ResourcePlan is the plan for the objects of one resource.
type ResourcePlan struct {
	Resource string `json:"resource"`
	Objects  int    `json:"objects"`
	// Outside are the objects in namespaces that the operator does not serve.
	Outside int `json:"outside,omitempty"`
	// Creations, Updates, and Deletions are the objects that would be handled, except those whose
	// handling has begun already: Continued.
	Creations int `json:"creations"`
	Updates   int `json:"updates"`
	Deletions int `json:"deletions"`
	Continued int `json:"continued"`
	// RollingOut are the objects that would be handled as updates without changes, in the steps of
	// a rollout.
	RollingOut int `json:"rollingOut,omitempty"`
	// Waiting are the objects that wait for rollouts that are stopped, and for nothing else.
	Waiting         int              `json:"waiting,omitempty"`
	StoppedRollouts []StoppedRollout `json:"stoppedRollouts,omitempty"`
	// Resumed are the objects for which handlers are called because an operator starts. Daemons
	// and Timers are those that would run.
	Resumed int `json:"resumed"`
	Daemons int `json:"daemons"`
	Timers  int `json:"timers"`
	// Suspended objects are not handled.
	Suspended int `json:"suspended"`
	// Undecidable are the objects with filters that cannot be evaluated here.
	Undecidable int `json:"undecidable"`
	// Undeclared are the names of records whose handlers are not declared, with the number of
	// objects that have them.
	Undeclared map[string]int `json:"undeclared,omitempty"`
	// ForgottenFailures are the numbers of objects that are stalled by handlers that are not declared, by
	// the ids of these: the failures no longer count.
	ForgottenFailures map[string]int `json:"forgottenFailures,omitempty"`
	// Calls are the numbers of calls that would be made, by the ids of handlers.
	Calls map[string]int `json:"calls,omitempty"`
	// Examples are some of the objects that would be handled.
	Examples []string `json:"examples,omitempty"`
	// Errors are the problems of single objects, and their number.
	Errors     []string `json:"errors,omitempty"`
	ErrorCount int      `json:"errorCount,omitempty"`

	limit   int // of the examples
	waiting awaited
	notes   []string
}

// DefaultExamples is how many objects a plan names, for each resource.
const DefaultExamples = 5

// NewPlan looks at all objects of the named kinds, or of all with handlers; in a namespace, or in
// all if it is empty.
func (c *Cluster) NewPlan(ctx context.Context, namespace string, kinds ...string) (*Plan, error) {
	resources := c.resolved.Resources
	if len(kinds) > 0 {
		resources = nil
		for _, kind := range kinds {
			found, err := c.resource(kind)
			if err != nil {
				return nil, err
			}
			resources = append(resources, found)
		}
	}
	plan := &Plan{}
	for _, warning := range c.resolved.Warnings {
		plan.Notes = append(plan.Notes, warning.Error())
	}
	for _, found := range resources {
		one, err := c.planOf(ctx, found, namespace)
		if err != nil {
			return nil, err
		}
		plan.Resources = append(plan.Resources, *one)
		plan.Notes = append(plan.Notes, one.notes...)
		plan.Notes = append(plan.Notes, c.unknownFields(ctx, found)...)
	}
	if len(plan.Resources) > 0 {
		plan.Notes = append(plan.Notes, "Sub-handlers and children are known only when their parents run, and are not counted.")
	}
	if note := c.startupNote(); note != "" {
		plan.Notes = append(plan.Notes, note)
	}

	plan.addRefusals(ctx, c)
	return plan, nil
}

// addRefusals says why no operator of the program starts, as an explanation does.
func (p *Plan) addRefusals(ctx context.Context, c *Cluster) {
	e := &Explanation{}
	c.addMissingFields(ctx, e)
	needed := len(e.mayRefuse)
	c.addInvalidSettings(e)
	p.Refusals = e.refuses
	p.PossibleRefusals = e.mayRefuse
	p.Notes = append(p.Notes, e.Notes...)
	canChange := len(c.Startup) > 0 // startup handlers can correct the settings
	p.refuses = len(e.refuses)+needed > 0 || len(e.mayRefuse) > 0 && !canChange
}

// NewPlanOfStart says why no operator of the program starts, and looks at no objects.
func (c *Cluster) NewPlanOfStart(ctx context.Context) *Plan {
	plan := &Plan{}
	for _, warning := range c.resolved.Warnings {
		plan.Notes = append(plan.Notes, warning.Error())
	}
	if note := c.startupNote(); note != "" {
		plan.Notes = append(plan.Notes, note)
	}
	if !c.IsRunning {
		plan.addRefusals(ctx, c)
	}
	return plan
}

// Refuses reports whether no operator of the program starts, as far as that is known.
func (p *Plan) Refuses() bool { return p.refuses }

// planOf lists the objects of a resource in pages.
func (c *Cluster) planOf(ctx context.Context, found discovery.SelectedResource, namespace string) (*ResourcePlan, error) {
	plan := &ResourcePlan{Resource: nameOf(found.Resource), Calls: map[string]int{}, Undeclared: map[string]int{}, ForgottenFailures: map[string]int{}, limit: c.MaxExamples}
	selection, named := c.selection(found)
	if named != "" {
		plan.notes = append(plan.notes, fmt.Sprintf("The operator watches only the objects of %s that match %s. Others are not counted.", plan.Resource, named))
	}
	err := EachPage(ctx, c.apiOf(found, namespace), selection, func(items []unstructured.Unstructured) error {
		for i := range items {
			obj := &items[i]
			if obj.GetKind() == "" {
				obj.SetGroupVersionKind(found.GVK())
			}
			if len(c.outsideScope(obj.GetNamespace())) > 0 {
				plan.Objects++
				plan.Outside++
			} else {
				n, err := c.inspector.Inspect(ctx, found, obj.Object)
				plan.add(n, obj.GetNamespace(), obj.GetName(), err)
			}
			items[i].Object = nil
		}
		if c.Progress != nil {
			c.Progress(plan.Resource, plan.Objects)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("the objects of %s cannot be listed: %w", plan.Resource, err)
	}
	plan.addAwaited(ctx, c, found)
	return plan, nil
}

// add counts an object.
func (p *ResourcePlan) add(n *inspection.Object, namespace, name string, err error) {
	p.Objects++
	if namespace != "" {
		name = namespace + "/" + name
	}
	if err != nil {
		p.ErrorCount++
		if len(p.Errors) < p.limit {
			p.Errors = append(p.Errors, fmt.Sprintf("%s: %v", name, err))
		}
		return
	}
	for _, record := range n.Undeclared {
		p.Undeclared[record]++
	}
	if n.Suspension.Active {
		p.Suspended++
		return
	}
	for id := range n.Forgotten {
		p.ForgottenFailures[id]++
	}

	// The calls of handlers. Several declarations can be one handler, which is counted once.
	var counted []string
	resumes := false
	isUndecidable := false
	for _, h := range n.Handlers {
		switch {
		case h.Undecidable != nil:
			isUndecidable = true
		case h.Kind == handler.OnDaemon && h.Selected:
			p.Daemons++
		case h.Kind == handler.OnTimer && h.Selected:
			p.Timers++
		case h.Kind.IsChange() && (h.Selected && h.Verdict.IsOpen() && !h.Skips || h.Resumes):
			if slices.Contains(counted, h.ID) {
				continue
			}
			counted = append(counted, h.ID)
			p.Calls[h.ID]++
			resumes = resumes || h.Resumes
		}
	}
	if resumes {
		p.Resumed++
	}
	if isUndecidable {
		p.Undecidable++
	}

	// What has happened to the object.
	if !n.InScope && n.Reason != cause.Delete {
		return
	}
	switch {
	case n.Reason.Handled() && n.Open:
		p.Continued++
	case n.Reason == cause.Create:
		p.Creations++
	case n.Reason == cause.Update:
		p.Updates++
	case n.Reason == cause.Delete:
		p.Deletions++
	default:
		p.waiting.add(n, name, p.limit)
		return
	}
	if len(p.Examples) < p.limit {
		p.Examples = append(p.Examples, name+": "+string(n.Reason))
	}
}

// Changes returns the number of objects that would be handled for what has happened to them.
func (p *Plan) Changes() int {
	sum := 0
	for _, r := range p.Resources {
		sum += r.Creations + r.Updates + r.Deletions + r.RollingOut
	}
	return sum
}
