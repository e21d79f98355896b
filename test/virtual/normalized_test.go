package virtual

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/kopftest"
)

// A webhook writes another value in place of a wanted one, and never the same twice; the API server
// writes quantities and defaults in its own way. In hours, the operator does nothing about that.
func TestWhatWebhooksAndTheServerMakeOfChildrenIsNoDrift(t *testing.T) {
	reviews := 0
	withOperator(t, func(r *kopf.Registry) {
		r.Ensure(examples, func(ctx context.Context, c *kopf.Change) ([]client.Object, error) {
			all, err := theme(ctx, c)
			labels := map[string]string{"app": c.Name()}
			return append(all, &appsv1.Deployment{
				ObjectMeta: metav1.ObjectMeta{Name: c.Name()},
				Spec: appsv1.DeploymentSpec{
					Selector: &metav1.LabelSelector{MatchLabels: labels},
					Template: corev1.PodTemplateSpec{
						ObjectMeta: metav1.ObjectMeta{Labels: labels},
						Spec: corev1.PodSpec{Containers: []corev1.Container{{
							Name: "web", Image: "shop", Ports: []corev1.ContainerPort{{ContainerPort: 80}},
							Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{
								"cpu": resource.MustParse("1000m"), "memory": resource.MustParse("1024Mi"),
							}},
						}}},
					},
				},
			}), err
		}, kopf.ID("children"))
		r.OnMutate(kopf.Resource("v1", "configmaps"), func(_ context.Context, a *kopf.Admission) error {
			reviews++
			a.Patch().Set(fmt.Sprint("webhook-", reviews), "data", "color")
			a.Patch().Set(fmt.Sprint(reviews), "metadata", "annotations", "example.com/reviewed")
			return nil
		}, kopf.ID("mutate"))
	}, func(t *testing.T, h *kopftest.Harness) {
		h.Create(newExample())
		h.Advance(time.Minute)
		found := newTheme()
		if h.Get(found); found.Data["color"] != "webhook-1" {
			t.Errorf("got %v", found.Data)
		}
		for what, test := range map[string]struct {
			happens func()
			calls   int
		}{
			"nothing":   {func() {}, 0},
			"a restart": {h.Restart, 1},
		} {
			writes, calls := len(h.Writes()), len(h.Calls("children"))
			test.happens()
			h.Advance(time.Minute)
			requests := refuse(h)
			h.Advance(10 * time.Minute)
			for selected, refused := range requests {
				if refused.Count() > 0 {
					t.Errorf("%s: %d requests to %s %s in ten minutes of rest", what, refused.Count(), selected.Verb, selected.Resource)
				}
				refused.End()
			}
			h.Advance(5 * time.Hour)
			for _, write := range h.Writes()[writes:] {
				if !strings.Contains(write.Path, "webhookconfigurations") {
					t.Errorf("%s: got the write %v", what, write)
				}
			}
			if called := len(h.Calls("children")) - calls; called != test.calls {
				t.Errorf("%s: %d calls", what, called)
			}
		}
	})
}

// refuse refuses all requests for parents, children, and events, except watches, which are renewed
// every few minutes.
func refuse(h *kopftest.Harness) map[kopftest.Requests]*kopftest.Failure {
	refused := map[kopftest.Requests]*kopftest.Failure{}
	for _, resource := range []string{"kopfexamples", "kopfexamples/status", "configmaps", "deployments", "events"} {
		for _, verb := range []string{"get", "list", "create", "update", "patch", "delete", "deletecollection"} {
			selected := kopftest.Requests{Verb: verb, Resource: resource}
			refused[selected] = h.Fail(selected, 0, errors.New("nothing is due"))
		}
	}
	return refused
}
