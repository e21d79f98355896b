package serve

import (
	"context"

	admissionv1 "k8s.io/api/admission/v1"

	"github.com/kopf-go/kopf/internal/conversion"
	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/serve/document"
)

// declare declares a handler.
func declare(r *kopf.Registry, d *document.Declaration, h *handler, all indices) {
	common := append([]kopf.Option{kopf.ID(d.ID), kopf.DeclaredAt(d.Place)}, commonOptions(d)...)
	switch d.Kind {
	case document.Create:
		r.OnCreate(d.Resource, h.change, changeOptions(d, common)...)
	case document.Update:
		r.OnUpdate(d.Resource, h.change, changeOptions(d, common)...)
	case document.Delete:
		r.OnDelete(d.Resource, h.change, changeOptions(d, common)...)
	case document.Resume:
		r.OnResume(d.Resource, h.change, changeOptions(d, common)...)
	case document.Change:
		r.OnField(d.Resource, d.Field, h.change, changeOptions(d, common)...)
	case document.Event:
		r.OnEvent(d.Resource, h.event, append(common, fieldOptions(d)...)...)
	case document.Timer:
		r.Timer(d.Resource, h.tick, backgroundOptions(d, common)...)
	case document.Daemon:
		r.Daemon(d.Resource, h.task, backgroundOptions(d, common)...)
	case document.Ensure:
		r.Ensure(d.Resource, h.children, childOptions(d, common, all)...)
	case document.Index:
		kopf.FillIndex(r, all[d.ID], d.Resource, h.index, append(common, fieldOptions(d)...)...)
	case document.Child:
		r.OnChild(d.Resource, d.Children, h.child, childOptions(d, common, all)...)
	case document.Drift:
		r.OnDrift(d.Resource, h.drift, childOptions(d, common, all)...)
	case document.Convert:
		converter := func(ctx context.Context, c *conversion.Call) error { return h.convert(ctx, c, d.Param) }
		r.Declarations().AddConversion(conversion.NewAt(d.Place, d.Resource, d.From, d.To, converter))
	case document.Validate:
		r.OnValidate(d.Resource, h.validate, admissionOptions(d, common)...)
	case document.Mutate:
		r.OnMutate(d.Resource, h.mutate, admissionOptions(d, common)...)
	case document.Startup:
		r.OnStartup(h.startup, common...)
	case document.Cleanup:
		r.OnCleanup(h.cleanup, common...)
	case document.Probe:
		r.OnProbe(h.probe, common...)
	case document.Subhandler: // declared by Change.Subhandler
	}
}

// errorsMode returns the mode for a word of a file.
func errorsMode(word string) kopf.ErrorsMode {
	switch word {
	case "permanent":
		return kopf.ErrorsPermanent
	case "ignored":
		return kopf.ErrorsIgnored
	default:
		return kopf.ErrorsTemporary
	}
}

// commonOptions returns the options that several families have. The document has checked which kinds can have
// which of them.
func commonOptions(d *document.Declaration) []kopf.Option {
	var all []kopf.Option
	if d.HasParam {
		all = append(all, kopf.Param(d.Param))
	}
	if len(d.Labels) > 0 {
		all = append(all, kopf.Labels(matchers(d.Labels)))
	}
	if len(d.Annotations) > 0 {
		all = append(all, kopf.Annotations(matchers(d.Annotations)))
	}
	if d.Errors != "" {
		all = append(all, kopf.Errors(errorsMode(d.Errors)))
	}
	if d.Retries > 0 {
		all = append(all, kopf.Retries(d.Retries))
	}
	if d.Timeout > 0 {
		all = append(all, kopf.Timeout(d.Timeout))
	}
	if d.Backoff != nil {
		all = append(all, kopf.Backoff(*d.Backoff))
	}
	if d.ExponentialBackoff != nil {
		all = append(all, kopf.ExponentialBackoff(d.ExponentialBackoff.First, d.ExponentialBackoff.Longest))
	}
	if d.Limit > 0 {
		all = append(all, kopf.Limit(d.Limit))
	}
	if d.Idle > 0 {
		all = append(all, kopf.Idle(d.Idle))
	}
	if d.Deleted {
		all = append(all, kopf.Deleted())
	}
	return all
}

// fieldOptions returns the options about a field. That of a change handler is its field already.
func fieldOptions(d *document.Declaration) []kopf.Option {
	var all []kopf.Option
	if d.Field != "" && d.Kind != document.Change {
		all = append(all, kopf.Field(d.Field))
	}
	if d.Value != nil {
		all = append(all, kopf.Value(matcher(d.Value)))
	}
	return all
}

func changeOptions(d *document.Declaration, common []kopf.Option) []kopf.ChangeOption {
	all := convert[kopf.ChangeOption](append(common, fieldOptions(d)...))
	if d.Old != nil {
		all = append(all, kopf.ValueBefore(matcher(d.Old)))
	}
	if d.New != nil {
		all = append(all, kopf.ValueAfter(matcher(d.New)))
	}
	if len(d.After) > 0 {
		all = append(all, kopf.After(d.After...))
	}
	if len(d.AfterFailure) > 0 {
		all = append(all, kopf.AfterFailure(d.AfterFailure...))
	}
	if d.Revision != "" {
		all = append(all, kopf.Revision(d.Revision))
	}
	if d.Baseline {
		all = append(all, kopf.Baseline())
	}
	if len(d.Rollout) > 0 {
		all = append(all, kopf.Rollout(d.Rollout...))
	}
	if d.Optional {
		all = append(all, kopf.Optional())
	}
	if d.HoldOnFailure {
		all = append(all, kopf.HoldOnFailure())
	}
	return all
}

func backgroundOptions(d *document.Declaration, common []kopf.Option) []kopf.BackgroundOption {
	all := convert[kopf.BackgroundOption](append(common, fieldOptions(d)...))
	if d.InitialDelay > 0 {
		all = append(all, kopf.InitialDelay(d.InitialDelay))
	}
	if d.Interval > 0 {
		all = append(all, kopf.Interval(d.Interval))
	}
	if d.Sharp {
		all = append(all, kopf.Sharp())
	}
	if d.Schedule != "" {
		var of []kopf.ScheduleOption
		if d.TimeZone != "" {
			of = append(of, kopf.TimeZone(d.TimeZone))
		}
		if d.CatchUp != nil {
			of = append(of, kopf.CatchUp(*d.CatchUp))
		}
		all = append(all, kopf.Schedule(d.Schedule, of...))
	}
	for _, field := range d.WakeOn {
		all = append(all, kopf.WakeOn(field))
	}
	for _, resource := range d.WatchChildren {
		all = append(all, kopf.WatchChildren(resource))
	}
	if d.ChildLabel != "" {
		all = append(all, kopf.ChildLabel(d.ChildLabel))
	}
	if d.CancellationBackoff > 0 {
		all = append(all, kopf.CancellationBackoff(d.CancellationBackoff))
	}
	if d.CancellationTimeout != nil {
		all = append(all, kopf.CancellationTimeout(*d.CancellationTimeout))
	}
	if d.CancellationPolling > 0 {
		all = append(all, kopf.CancellationPolling(d.CancellationPolling))
	}
	return all
}

func admissionOptions(d *document.Declaration, common []kopf.Option) []kopf.AdmissionOption {
	all := convert[kopf.AdmissionOption](append(common, fieldOptions(d)...))
	if len(d.Operations) > 0 {
		var operations []admissionv1.Operation
		for _, name := range d.Operations {
			operations = append(operations, admissionv1.Operation(name))
		}
		all = append(all, kopf.Operations(operations...))
	}
	if d.Subresource != "" {
		all = append(all, kopf.Subresource(d.Subresource))
	}
	if d.SideEffects {
		all = append(all, kopf.SideEffects())
	}
	if d.IgnoreFailures {
		all = append(all, kopf.IgnoreFailures())
	}
	if d.Persistent {
		all = append(all, kopf.Persistent())
	}
	return all
}

func childOptions(d *document.Declaration, common []kopf.Option, known indices) []kopf.ChildOption {
	all := convert[kopf.ChildOption](common)
	if d.AllowEmpty {
		all = append(all, kopf.AllowEmpty())
	}
	if d.AdoptExisting {
		all = append(all, kopf.AdoptExisting())
	}
	if d.WaitReady {
		all = append(all, kopf.WaitReady())
	}
	if len(d.Prune) > 0 {
		all = append(all, kopf.Prune(d.Prune...))
	}
	if len(d.Recreate) > 0 {
		all = append(all, kopf.Recreate(d.Recreate...))
	}
	if len(d.WatchIndices) > 0 {
		all = append(all, kopf.WatchIndex(known.named(d.WatchIndices)...))
	}
	if d.ChildLabel != "" {
		all = append(all, kopf.ChildLabel(d.ChildLabel))
	}
	if len(d.EnsuredBy) > 0 {
		all = append(all, kopf.EnsuredBy(d.EnsuredBy...))
	}
	return all
}

// convert returns common options as those of a family: each of them is one.
func convert[O any](common []kopf.Option) []O {
	var all []O
	for _, option := range common {
		all = append(all, any(option).(O)) //nolint:errcheck // an Option is an option of each family
	}
	return all
}

func matchers(all map[string]*document.Matcher) map[string]kopf.Matcher {
	filters := map[string]kopf.Matcher{}
	for key, m := range all {
		filters[key] = matcher(m)
	}
	return filters
}

func matcher(m *document.Matcher) kopf.Matcher {
	switch {
	case m.Present:
		return kopf.Present()
	case m.Absent:
		return kopf.Absent()
	case m.Not != nil:
		return kopf.Not(matcher(m.Not))
	case m.Equal != nil:
		return kopf.Equal(*m.Equal)
	default:
		var each []kopf.Matcher
		for _, one := range m.AnyOf {
			each = append(each, matcher(one))
		}
		return kopf.Any(each...)
	}
}
