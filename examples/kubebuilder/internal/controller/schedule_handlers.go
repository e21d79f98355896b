package controller

import (
	"context"
	"time"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	webv1 "github.com/kopf-go/kopf/examples/kubebuilder/api/v1"
	"github.com/kopf-go/kopf/pkg/kopf"
)

// AddSchedules declares the handlers of schedules.
func AddSchedules(registry *kopf.Registry) {
	schedules := kopf.For[*webv1.Schedule](registry)
	schedules.Timer(scale, kopf.Interval(time.Minute))
}

// scale changes the site, whose own handlers do the rest. An unchanged site is not written.
func scale(ctx context.Context, schedule *webv1.Schedule, t *kopf.Tick) error {
	site := &webv1.Site{}
	if err := t.Client().Get(ctx, client.ObjectKey{Namespace: schedule.Namespace, Name: schedule.Spec.Site}, site); err != nil {
		return err
	}
	active, replicas := isActive(schedule.Spec, time.Now()), int32(0)
	if active {
		replicas = schedule.Spec.Replicas
	}
	if ptr.Deref(site.Spec.Replicas, 1) != replicas {
		t.Logger().Info("The site is scaled.", "site", site.Name, "replicas", replicas)
		before := site.DeepCopy()
		site.Spec.Replicas = &replicas
		if err := t.Client().Patch(ctx, site, client.MergeFrom(before)); err != nil {
			return err
		}
	}
	kopf.Update(t, func(latest *webv1.Schedule) error {
		latest.Status.Active = active
		return nil
	})
	return nil
}

// isActive knows schedules that last over midnight.
func isActive(spec webv1.ScheduleSpec, now time.Time) bool {
	hour := now.UTC().Hour()
	if spec.From < spec.To {
		return spec.From <= hour && hour < spec.To
	}
	return spec.From <= hour || hour < spec.To
}
