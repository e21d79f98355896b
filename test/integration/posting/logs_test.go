package posting

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/test/testenv"
)

func TestLinesOfHandlersArePosted(t *testing.T) {
	talk := func(ctx context.Context, c *kopf.Change) error {
		c.Logger().Info("The claim is created.", "size", "1Gi", "spec", c.Spec().Map())
		log.FromContext(ctx).WithValues("attempt", c.Retry()).Error(errors.New("no network"), "The mail is not sent.")
		c.Logger().V(1).Info("Every detail.")
		kopf.LogOnly(c.Logger()).Info("Not for everybody.")
		kopf.LogOnly(log.FromContext(ctx)).Error(errors.New("secret"), "Neither is this.")
		kopf.Info(ctx, "Told", "Some information.")
		kopf.Warn(ctx, "Told", "Some warning.")
		kopf.Exception(ctx, "Told", "Some exception:", errors.New("broken"))
		kopf.Event(ctx, "SomeType", "Told", "Some event.")
		return nil
	}
	const (
		info      = "Normal Logging: The claim is created. size=1Gi spec=..."
		failure   = `Error Logging: The mail is not sent: no network attempt=0`
		detail    = "Debug Logging: Every detail."
		told      = "Normal Told: Some information."
		warned    = "Warning Told: Some warning."
		exception = "Error Told: Some exception: broken"
		event     = "SomeType Told: Some event."
		success   = "Normal HandlerSucceeded: Handler talk succeeded."
		finished  = "Normal CycleFinished: The creation is processed: 1 succeeded; 0 failed."
	)
	tests := map[string]struct {
		posting kopf.Settings
		want    []string
	}{
		"by default":        {with(func(p *posts) {}), []string{info, failure, told, warned, exception, event, success, finished}},
		"details, too":      {with(func(p *posts) { p.Level = slog.LevelDebug }), []string{info, failure, detail, told, warned, exception, event, success, finished}},
		"warnings":          {with(func(p *posts) { p.Level = slog.LevelWarn }), []string{failure, warned, exception, event}},
		"errors":            {with(func(p *posts) { p.Level = slog.LevelError }), []string{failure, exception, event}},
		"without log lines": {with(func(p *posts) { p.WithoutLogs = true }), []string{told, warned, exception, event, success, finished}},
		"nothing":           {with(func(p *posts) { p.Disabled = true }), nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, test.posting)
			s.OnCreate(examples, talk, kopf.ID("talk"))
			obj := s.start().create("one")
			s.expectHandled(1)
			s.Eventually(cluster.Events(obj)).Should(gomega.ConsistOf(test.want))
			s.Consistently(cluster.Events(obj), brief).Should(gomega.ConsistOf(test.want))
			s.Expect(s.logs.With("The mail is not sent.", `"error"="no network"`, `"handler"="talk"`, `"attempt"=0`)).To(gomega.HaveLen(1))
			s.Expect(s.logs.With("Not for everybody.")).To(gomega.HaveLen(1))
			s.Expect(s.logs.With("Every detail.")).To(gomega.BeEmpty(), "how much is logged is another matter")
		})
	}
}

func TestEventsNameOperatorAndObject(t *testing.T) {
	s := newScene(t, with(func(p *posts) { p.Component, p.Instance, p.EventNamePrefix = "my-operator", "replica-1", "mine-" }))
	s.OnCreate(examples, func(_ context.Context, c *kopf.Change) error {
		c.Logger().Info("Here we are.")
		return nil
	}, kopf.ID("create"))
	obj := s.start().create("one")
	s.Eventually(s.list(obj)).Should(gomega.HaveLen(3))
	events, err := s.list(obj)()
	s.Expect(err).NotTo(gomega.HaveOccurred())
	for _, event := range events {
		s.Expect(event.InvolvedObject).To(gomega.Equal(corev1.ObjectReference{
			APIVersion: testenv.APIVersion, Kind: "KopfExample", Namespace: s.namespace, Name: "one", UID: obj.GetUID(),
		}))
		s.Expect(event.Source.Component).To(gomega.Equal("my-operator"))
		s.Expect(event.ReportingController).To(gomega.Equal("my-operator"))
		s.Expect(event.ReportingInstance).To(gomega.Equal("replica-1"))
		s.Expect(event.Name).To(gomega.HavePrefix("mine-"))
	}
}

// Handlers of all kinds have the same logger, and the lines of the engine about them are not
// posted.
func TestLinesOfAllKindsOfHandlersArePosted(t *testing.T) {
	s := newScene(t, kopf.Settings{})
	s.OnEvent(examples, func(_ context.Context, e *kopf.WatchEvent) error {
		if e.Type() == "ADDED" {
			e.Logger().Info("An event.")
			return errors.New("which fails")
		}
		return nil
	}, kopf.ID("event"))
	s.Daemon(examples, func(_ context.Context, t *kopf.Task) error {
		t.Logger().Info("A daemon.")
		<-t.Stopped()
		return nil
	}, kopf.ID("daemon"))
	s.Timer(examples, func(_ context.Context, t *kopf.Tick) error {
		t.Logger().Info("A timer.")
		return kopf.Permanent(errors.New("no more"))
	}, kopf.ID("timer"), kopf.Interval(time.Hour))
	kopf.NewIndex(s.Registry, examples, func(_ context.Context, i *kopf.Indexed) (map[string]string, error) {
		i.Logger().Info("An index.")
		return nil, errors.New("which fails")
	}, kopf.ID("index"), kopf.Errors(kopf.ErrorsPermanent))
	s.OnCreate(examples, func(_ context.Context, c *kopf.Change) error {
		c.Logger().Info("A creation.")
		c.Subhandler("part", func(_ context.Context, c *kopf.Change) error {
			c.Logger().Info("A part.")
			return nil
		})
		return nil
	}, kopf.ID("create"))
	obj := s.start().create("one")
	s.Eventually(cluster.Events(obj)).Should(gomega.ConsistOf(
		"Normal Logging: An event.", "Normal Logging: A daemon.", "Normal Logging: A timer.", "Normal Logging: An index.",
		"Normal Logging: A creation.", "Normal Logging: A part.",
		"Warning HandlerFailed: Handler timer failed permanently: no more",
		"Normal HandlerSucceeded: Handler create/part succeeded.", "Normal HandlerSucceeded: Handler create succeeded.",
		"Normal CycleFinished: The creation is processed: 2 succeeded; 0 failed.",
	))
}

func TestEqualLinesBecomeOneEvent(t *testing.T) {
	s := newScene(t, kopf.Settings{})
	s.OnCreate(examples, func(_ context.Context, c *kopf.Change) error {
		for range 100 {
			c.Logger().Info("Again and again.")
		}
		return nil
	}, kopf.ID("create"))
	obj := s.start().create("one")
	s.Eventually(cluster.Events(obj)).Should(gomega.ContainElement(gomega.HavePrefix("Normal CycleFinished")), "which comes after the lines")
	events, err := s.list(obj)()
	s.Expect(err).NotTo(gomega.HaveOccurred())
	s.Expect(events).To(gomega.HaveLen(3))
	s.Expect(events).To(gomega.ContainElement(gomega.And(
		gomega.HaveField("Message", "Again and again."), gomega.HaveField("Count", gomega.BeEquivalentTo(25)),
	)))
	counts := func() string { return s.requests.Apart().String() } // the answers
	s.Eventually(counts).Should(gomega.Equal("24 PATCH events, 3 POST events"), "the limit, a success and the end")
}

func TestManyLinesOfOneObjectDoNotDisplaceOthers(t *testing.T) {
	s := newScene(t, with(func(p *posts) { p.Burst, p.Refill = 3, time.Hour }))
	s.OnCreate(examples, func(_ context.Context, c *kopf.Change) error {
		if c.Name() == "talkative" {
			for i := range 50 {
				c.Logger().Info(fmt.Sprintf("Line %d.", i))
			}
		}
		c.Logger().Error(nil, "That is it.")
		return nil
	}, kopf.ID("create"))
	talkative, other := s.start().create("talkative"), s.create("other")
	outcome := []any{
		"Error Logging: That is it.", "Normal HandlerSucceeded: Handler create succeeded.",
		"Normal CycleFinished: The creation is processed: 1 succeeded; 0 failed.",
	}
	s.Eventually(cluster.Events(other)).Should(gomega.ConsistOf(outcome...))
	s.Eventually(cluster.Events(talkative)).Should(gomega.ConsistOf(append(outcome,
		"Normal Logging: Line 0.", "Normal Logging: Line 1.", "Normal Logging: Line 2.")...))
}

func TestLinesAboutAClusterScopedObjectArePosted(t *testing.T) {
	s := newScene(t, kopf.Settings{})
	s.OnCreate(kopf.Resource(testenv.APIVersion, "kopfclusters"), func(_ context.Context, c *kopf.Change) error {
		c.Logger().Info("Here we are.")
		return nil
	}, kopf.ID("create"))
	s.start()
	obj := testenv.NewObject("KopfCluster", "", s.namespace, nil)
	s.Expect(cluster.Client().Create(t.Context(), obj)).To(gomega.Succeed())
	s.Eventually(cluster.Events(obj)).Should(gomega.ContainElement("Normal Logging: Here we are."))
	events, err := s.list(obj)()
	s.Expect(err).NotTo(gomega.HaveOccurred())
	s.Expect(events).To(gomega.HaveEach(gomega.HaveField("Namespace", "default")))
}

func TestNoEventsArePostedAboutEvents(t *testing.T) {
	s := newScene(t, kopf.Settings{})
	s.OnEvent(kopf.Resource("v1", "events"), func(ctx context.Context, e *kopf.WatchEvent) error {
		e.Logger().Info("An event.", "name", e.Name())
		kopf.Info(ctx, "Told", "And another one.")
		s.calls.Note("called")
		return nil
	}, kopf.ID("event"))
	s.start()
	event := &corev1.Event{
		InvolvedObject: corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: s.namespace, Name: "p"},
		Reason:         "Test", Type: corev1.EventTypeNormal,
	}
	event.Namespace, event.Name = s.namespace, "test"
	s.Expect(cluster.Client().Create(t.Context(), event)).To(gomega.Succeed())
	s.Eventually(s.calls.All).Should(gomega.HaveLen(1))
	s.Consistently(s.calls.All, brief).Should(gomega.HaveLen(1), "the handler must not trigger itself")
	s.Expect(s.requests.Apart().String()).NotTo(gomega.MatchRegexp("POST|PATCH"))
}

// list returns all fields of the events of cluster.Events.
func (s *scene) list(about *unstructured.Unstructured) func() ([]corev1.Event, error) {
	return func() ([]corev1.Event, error) {
		var all corev1.EventList
		err := cluster.Client().List(s.t.Context(), &all, client.MatchingFields{"involvedObject.uid": string(about.GetUID())})
		return all.Items, err
	}
}
