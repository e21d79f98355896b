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

func (e *ForeignError) Error() string {
	var parts []string
	for _, id := range slices.Sorted(maps.Keys(e.Objects)) {
		parts = append(parts, fmt.Sprintf("%s (objects: %d)", id, e.Objects[id]))
	}
	return fmt.Sprintf("nothing was written: objects have the progress of handlers that this program does not declare, so their state can belong to another operator: %s; if it does not, add --also-ids %s",
		strings.Join(parts, ", "), strings.Join(slices.Sorted(maps.Keys(e.Objects)), ","))
}

// ErrInterrupted means that the release has ended before all objects were released.
var ErrInterrupted = errors.New("the release was interrupted: repeat it to release the other objects")

// Run releases the objects, unless that is not safe, and then nothing is written. With an error,
// there can be a report of what was done until then.
func (r *Releaser) Run(ctx context.Context) (*Report, error) {
	var unknown *UnknownError
	err := r.checkBefore(ctx)
	if isUnknown := errors.As(err, &unknown); err != nil && !(isUnknown && r.DryRun) {
		return nil, err
	}
	report, err := r.scan(ctx)
	if report != nil && unknown != nil {
		report.Refused = unknown.Error()
	}
	if err != nil || r.DryRun {
		return report, interrupted(ctx, err)
	}
	done := &Report{Left: report.Left}
	for i, found := range r.resources {
		one, err := r.release(ctx, found, report.Resources[i].Objects)
		done.Resources = append(done.Resources, *one)
		if err != nil {
			return done, interrupted(ctx, err)
		}
	}
	return done, nil
}

func interrupted(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return ErrInterrupted
	}
	return err
}

// scan looks at all objects, and finds out what would be done.
func (r *Releaser) scan(ctx context.Context) (*Report, error) {
	report := &Report{DryRun: true, Left: r.left()}
	foreign := map[string]int{}
	for _, found := range r.resources {
		one, finder := ResourceReport{Resource: resourceName(found)}, r.finder(found)
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
		report.Resources = append(report.Resources, one)
	}
	if len(foreign) > 0 {
		return nil, &ForeignError{foreign}
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
