package controller

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	webv1 "github.com/kopf-go/kopf/examples/kubebuilder/api/v1"
	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/kopftest"
)

// These tests need no cluster. Time is virtual in those with a kopftest.Harness: a day takes no
// time, and begins at midnight.

func newScheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), webv1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	return scheme
}

// newHarness starts the operator on an API server in memory.
func newHarness(t *testing.T, options ...kopftest.Option) *kopftest.Harness {
	t.Helper()
	declare := func() *kopf.Registry {
		registry := kopf.NewRegistry()
		AddSites(registry)
		AddSchedules(registry)
		AddSiteAdmission(registry)
		AddCronJobs(registry)
		AddCronJobAdmission(registry)
		return registry
	}
	options = append(options, kopftest.Scheme(newScheme(t)), kopftest.CRDs("../../config/crd/bases"))
	return kopftest.New(t, declare, options...)
}

func newSite() *webv1.Site {
	return &webv1.Site{
		TypeMeta:   metav1.TypeMeta{APIVersion: webv1.GroupVersion.String(), Kind: "Site"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "hello"},
		Spec:       webv1.SiteSpec{Message: "Hello"},
	}
}

func newSchedule() *webv1.Schedule {
	return &webv1.Schedule{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "by-day"},
		Spec:       webv1.ScheduleSpec{Site: "hello", From: 8, To: 18, Replicas: 3},
	}
}

func TestSiteGetsItsChildren(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t)
		site := newSite()
		h.Create(site)
		h.Settle()
		config := &corev1.ConfigMap{ObjectMeta: childMeta(site)}
		deployment := &appsv1.Deployment{ObjectMeta: childMeta(site)}
		service := &corev1.Service{ObjectMeta: childMeta(site)}
		for _, child := range []client.Object{config, deployment, service} {
			if !metav1.IsControlledBy(h.Get(child), site) {
				t.Errorf("%T is not a child of the site", child)
			}
		}
		if config.Data["index.html"] != "Hello" || deployment.Spec.Template.Spec.Containers[0].Image != DefaultImage {
			t.Errorf("got %v, %+v", config.Data, deployment.Spec.Template.Spec)
		}

		h.Patch(site, `{"spec": {"message": "Goodbye", "replicas": 2}}`)
		h.Settle()
		h.Get(config)
		h.Get(deployment)
		if config.Data["index.html"] != "Goodbye" || *deployment.Spec.Replicas != 2 {
			t.Errorf("got %v, %d replicas", config.Data, *deployment.Spec.Replicas)
		}

		// Nothing holds the deletion, and Kubernetes deletes the children.
		h.Delete(site)
		h.CollectGarbage()
		if h.Exists(site) || h.Exists(config) || h.Exists(deployment) || h.Exists(service) {
			t.Error("something is left")
		}
	})
}

// A fault at each write of the creation and of an update leads to the same children.
func TestSiteSurvivesFaults(t *testing.T) {
	kopftest.Sweep(t, func(t *testing.T, fault kopftest.Option) {
		h := newHarness(t, fault)
		site := newSite()
		h.Create(site)
		h.Settle()
		h.Patch(site, `{"spec": {"message": "Goodbye"}}`)
		h.Settle()
	})
}

func TestScheduleIsRetriedUntilThereIsASite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t)
		schedule := newSchedule()
		h.Create(schedule)
		h.Advance(90 * time.Second)
		calls := h.Calls("scale")
		if len(calls) != 2 || calls[0].Err == nil || calls[1].Err == nil || calls[1].Attempt != 2 {
			t.Fatalf("got %v", calls)
		}
		h.Create(newSite())
		h.Advance(time.Minute)
		calls = h.Calls("scale")
		if len(calls) != 3 || calls[2].Err != nil || calls[2].Attempt != 3 {
			t.Errorf("got %v", calls)
		}
	})
}

func TestScheduleScalesTheSite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t)
		site, schedule := newSite(), newSchedule()
		h.Create(site)
		h.Create(schedule)
		deployment := &appsv1.Deployment{ObjectMeta: childMeta(site)}
		for hour := range 24 {
			h.Advance(30 * time.Minute)
			h.Get(schedule)
			h.Get(deployment)
			active := 8 <= hour && hour < 18
			replicas := map[bool]int32{true: 3, false: 0}[active]
			if schedule.Status.Active != active || *deployment.Spec.Replicas != replicas {
				t.Errorf("%d:30: active: %v, with %d replicas", hour, schedule.Status.Active, *deployment.Spec.Replicas)
			}
			h.Advance(30 * time.Minute)
		}
	})
}

// One call of the handler, with a client that fails for one child: the others are made
// nevertheless, and the next call makes the rest.
func TestDeployFails(t *testing.T) {
	site, scheme, full := newSite(), newScheme(t), true
	site.UID = "1"
	memory := interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme).Build(), interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
			if _, isDeployment := object.(*appsv1.Deployment); isDeployment && full {
				return errors.New("the quota is exhausted")
			}
			return c.Create(ctx, object, options...)
		},
	})
	first := kopftest.CallFor(t, deploy, site, kopftest.Client(memory))
	if first.Err == nil || !strings.Contains(first.Err.Error(), "the quota is exhausted") || len(first.Patch) > 0 {
		t.Errorf("got %+v", first)
	}
	service, deployment := &corev1.Service{}, &appsv1.Deployment{}
	if err := memory.Get(t.Context(), client.ObjectKeyFromObject(site), service); err != nil {
		t.Error(err)
	}

	full = false
	second := kopftest.CallFor(t, deploy, site, kopftest.Client(memory), kopftest.Attempt(2))
	if url, _ := second.Patch["status"].(map[string]any)["url"].(string); second.Err != nil || url != "http://hello.default" {
		t.Errorf("got %+v", second)
	}
	if err := memory.Get(t.Context(), client.ObjectKeyFromObject(site), deployment); err != nil {
		t.Error(err)
	}
}

func TestDefaults(t *testing.T) {
	three := new(int32(3))
	tests := map[string]struct {
		given webv1.SiteSpec
		patch map[string]any
	}{
		"for everything that is left out": {webv1.SiteSpec{}, map[string]any{"image": DefaultImage, "replicas": int64(1)}},
		"not for what is given":           {webv1.SiteSpec{Image: "mine:1.0", Replicas: three}, nil},
		"for one field":                   {webv1.SiteSpec{Image: "mine:1.0"}, map[string]any{"replicas": int64(1)}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			site := newSite()
			site.Spec = test.given
			outcome := kopftest.CallFor(t, setDefaults, site, kopftest.Scheme(newScheme(t)))
			changed, _ := outcome.Patch["spec"].(map[string]any)
			if outcome.Err != nil || !equality.Semantic.DeepEqual(changed, test.patch) {
				t.Errorf("got %+v", outcome)
			}
		})
	}
}

func TestImageIsChecked(t *testing.T) {
	for image, allowed := range map[string]bool{"mine:1.0": true, "mine": false, "mine:latest": false} {
		t.Run(image, func(t *testing.T) {
			site := newSite()
			site.Spec.Image = image
			err := kopftest.CallFor(t, checkImage, site, kopftest.Scheme(newScheme(t))).Err
			if rejected := strings.Contains(fmt.Sprint(err), "needs a tag other than latest"); rejected == allowed || allowed != (err == nil) {
				t.Errorf("got %v", err)
			}
		})
	}
}
