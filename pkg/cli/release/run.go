package release

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kopf-go/kopf/pkg/reconcile/discovery"
)

// ForeignError means that objects have the progress of handlers that the program does not declare.
type ForeignError struct {
	// Objects are the numbers of objects by the ids of the handlers.
	Objects map[string]int
}

func (e *ForeignError) Error() string { return "nothing was written: " + e.reason() }

func (e *ForeignError) reason() string {
	var parts []string
	for _, id := range slices.Sorted(maps.Keys(e.Objects)) {
		parts = append(parts, fmt.Sprintf("%s (objects: %d)", id, e.Objects[id]))
	}
	return fmt.Sprintf("objects have the progress of handlers that this program does not declare, so their state can belong to another operator: %s; if it does not, add --also-ids %s",
		strings.Join(parts, ", "), strings.Join(slices.Sorted(maps.Keys(e.Objects)), ","))
}

// ErrInterrupted means that the release has ended before all objects were released.
var ErrInterrupted = errors.New("the release was interrupted: repeat it to release the other objects")

// Run releases the objects, unless that is not safe, and then nothing is written. With an error,
// there can be a report of what was done until then. The report of a dry run says why the release
// would be refused.
func (r *Releaser) Run(ctx context.Context) (*Report, error) {
	refused := r.checkBefore(ctx)
	var running *RunningError
	var unknown *UnknownError
	isRefusal := errors.As(refused, &running) || errors.As(refused, &unknown)
	if refused != nil && !(r.DryRun && isRefusal) {
		return nil, refused
	}
	report, err := r.scan(ctx)
	var foreign *ForeignError
	switch isForeign := errors.As(err, &foreign); {
	case err != nil && !(r.DryRun && isForeign):
		return nil, interrupted(ctx, err)
	case refused != nil:
		report.Refused = append(report.Refused, refused.Error())
	}
	if foreign != nil {
		report.Refused = append(report.Refused, foreign.reason())
	}
	removed, err := r.removeWebhooks(ctx)
	if err != nil {
		return nil, interrupted(ctx, err)
	}
	conversions, left, err := r.removeConversions(ctx)
	if err != nil {
		return nil, interrupted(ctx, err)
	}
	removed = append(removed, conversions...)
	report.Webhooks = removed
	report.Left = append(report.Left, left...)
	if r.DryRun {
		return report, nil
	}
	done := &Report{Left: report.Left, Webhooks: removed}
	for i, found := range r.resources {
		one, err := r.release(ctx, found, report.Resources[i].Objects)
		done.Resources = append(done.Resources, *one)
		if err != nil {
			return done, interrupted(ctx, err)
		}
	}
	return done, nil
}

// interrupted returns the error of a release, or ErrInterrupted if its context has ended.
func interrupted(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return ErrInterrupted
	}
	return err
}

// scan looks at all objects, and finds out what would be done. With a *ForeignError, there is a
// report.
func (r *Releaser) scan(ctx context.Context) (*Report, error) {
	report := &Report{DryRun: true}
	foreign := map[string]int{}
	for _, found := range r.resources {
		one := ResourceReport{Resource: resourceName(found)}
		finder := r.finder(found)
		err := r.each(ctx, found, func(items []unstructured.Unstructured) error {
			for i := range items {
				t, err := finder.find(ctx, &items[i])
				if err != nil {
					return fmt.Errorf("%s: %w", nameOf(&items[i]), err)
				}
				for _, id := range t.foreign {
					foreign[id]++
				}
				one.Objects++
				one.add(nameOf(&items[i]), t, r.AbandonDeletions)
			}
			if r.Scanned != nil {
				r.Scanned(one.Resource, one.Objects)
			}
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("the objects of %s cannot be listed: %w", one.Resource, err)
		}
		r.addCommands(&one, found.Resource)
		report.Resources = append(report.Resources, one)
	}
	report.Left = r.left(report)
	if len(foreign) > 0 {
		return report, &ForeignError{foreign}
	}
	return report, nil
}

func resourceName(found discovery.SelectedResource) string {
	return strings.TrimSuffix(found.Plural+"."+found.Group, ".")
}

// parallel is the number of objects that are written at the same time.
const parallel = 8

// maxFailures is the number of failures, one after another, after which a release ends.
const maxFailures = 10

// release releases the objects of a resource.
func (r *Releaser) release(ctx context.Context, found discovery.SelectedResource, total int) (*ResourceReport, error) {
	w := &writer{Releaser: r, resource: found, finder: r.finder(found), report: ResourceReport{Resource: resourceName(found)}}
	err := r.each(ctx, found, func(items []unstructured.Unstructured) error {
		if err := r.checkStopped(ctx); err != nil {
			return err
		}
		w.page(ctx, items)
		if r.Progress != nil {
			r.Progress(w.report.Resource, w.report.Objects, max(total, w.report.Objects))
		}
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case w.isHopeless():
			return fmt.Errorf("the objects of %s cannot be written: %s", w.report.Resource, w.report.Errors[len(w.report.Errors)-1])
		}
		return nil
	})
	r.addCommands(&w.report, found.Resource)
	return &w.report, err
}

// page releases the objects of a page.
func (w *writer) page(ctx context.Context, items []unstructured.Unstructured) {
	var all sync.WaitGroup
	next := make(chan *unstructured.Unstructured)
	for range parallel {
		all.Go(func() {
			for obj := range next {
				w.object(ctx, obj)
			}
		})
	}
	for i := range items {
		next <- &items[i]
	}
	close(next)
	all.Wait()
}
