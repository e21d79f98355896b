package posting

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/kopf-go/kopf/pkg/events"
	"github.com/kopf-go/kopf/test/testenv"
)

func TestCoreAPIAcceptsAnyType(t *testing.T) {
	b := newBench(t, nil)
	ref := b.example(cluster.Namespace(t))
	types := []string{"Normal", "Warning", "Error", "SomeType", "größerTyp", strings.Repeat("x", 200)}
	for _, eventType := range types {
		b.Post(ref, eventType, "SomeReason", strings.Repeat("€\n", 1000))
	}
	b.Eventually(b.events).Should(gomega.HaveLen(len(types)))
	events, _ := b.events()
	var posted []string
	for _, event := range events {
		posted = append(posted, event.Type)
		b.Expect(event.InvolvedObject).To(gomega.Equal(ref))
		b.Expect(event.Namespace).To(gomega.Equal(ref.Namespace))
		b.Expect(event.Reason).To(gomega.Equal("SomeReason"))
		b.Expect(len(event.Message)).To(gomega.BeNumerically("<=", 1024))
		b.Expect(event.Message).NotTo(gomega.ContainSubstring("\n"))
		b.Expect(event.ReportingController).To(gomega.Equal(component(t)))
	}
	types[len(types)-1] = strings.Repeat("x", 128)
	b.Expect(posted).To(gomega.ConsistOf(types))
}

// This is the reason for using the core API.
func TestNewerAPIAcceptsOnlyTwoTypes(t *testing.T) {
	g := gomega.NewWithT(t)
	event := func(eventType string) *eventsv1.Event {
		return &eventsv1.Event{
			ObjectMeta: metav1.ObjectMeta{GenerateName: "e-", Namespace: "default"}, EventTime: metav1.NowMicro(),
			ReportingController: "c", ReportingInstance: "i", Action: "A", Reason: "R", Type: eventType,
		}
	}
	g.Expect(cluster.Client().Create(t.Context(), event("Normal"))).To(gomega.Succeed())
	g.Expect(cluster.Client().Create(t.Context(), event("SomeType"))).To(gomega.MatchError(gomega.ContainSubstring("type: Invalid value")))
}

func TestEventsAboutClusterScopedObjectsArePosted(t *testing.T) {
	b := newBench(t, nil)
	refs := []corev1.ObjectReference{
		{APIVersion: "v1", Kind: "Node", Name: "node1", UID: "uid-1"},
		{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole", Name: "system:node", UID: "uid-2"},
		{APIVersion: "v1", Kind: "Node", Name: strings.Repeat("x", 253), UID: "uid-3"},
	}
	for _, ref := range refs {
		for i := range 12 { // some of them are combined, under a different kind of name
			b.Post(ref, "Normal", "R", fmt.Sprint(i))
		}
	}
	b.Eventually(b.Stats).Should(gomega.Equal(events.Stats{Posted: 36}), "%v", b.logs.With())
	events, _ := b.events()
	b.Expect(events).To(gomega.HaveLen(3 * 10))
	for _, event := range events {
		b.Expect(event.Namespace).To(gomega.Equal("default"))
	}
}

func TestRepeatedEventsAreStoredWithACount(t *testing.T) {
	b := newBench(t, nil)
	ref := b.example(cluster.Namespace(t))
	for range 3 {
		b.Post(ref, "SomeType", "R", "again")
	}
	count := func() (int32, error) {
		events, err := b.events()
		if len(events) != 1 {
			return 0, err
		}
		return events[0].Count, nil
	}
	b.Eventually(count).Should(gomega.BeEquivalentTo(3))

	events, _ := b.events()
	b.remove(&events[0]) // as if it had expired
	b.Post(ref, "SomeType", "R", "again")
	b.Eventually(count).Should(gomega.BeEquivalentTo(4))
}

func TestSimilarEventsAreStoredCombined(t *testing.T) {
	b := newBench(t, nil)
	ref := b.example(cluster.Namespace(t))
	for i := range 15 {
		b.Post(ref, "Warning", "R", fmt.Sprintf("attempt %d", i))
	}
	b.Eventually(b.Stats).Should(gomega.Equal(events.Stats{Posted: 15}))
	events, err := b.events()
	b.Expect(err).NotTo(gomega.HaveOccurred())
	b.Expect(events).To(gomega.HaveLen(10))
	b.Expect(events).To(gomega.ContainElement(gomega.And(
		gomega.HaveField("Message", "(combined from similar events): attempt 14"),
		gomega.HaveField("Count", gomega.BeEquivalentTo(6)),
		gomega.HaveField("ReportingController", component(t)),
	)))
}

func TestEventsOfTerminatingNamespacesAreIgnored(t *testing.T) {
	b := newBench(t, nil)
	namespace := cluster.Namespace(t)
	ref := b.example(namespace)
	b.remove(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
	b.Post(ref, "Normal", "R", "terminating")
	ref.Namespace = "never-was-here"
	b.Post(ref, "Normal", "R", "gone")

	other := b.example(cluster.Namespace(t))
	b.Post(other, "Normal", "R", "the last one")
	b.Eventually(b.Stats).Should(gomega.Equal(events.Stats{Posted: 1}))
	b.Expect(b.logs.With()).To(gomega.BeEmpty())
	b.Expect(b.events()).To(gomega.HaveLen(1))
}

func TestMissingPermissionIsLoggedOnce(t *testing.T) {
	b := newBench(t, func(config *rest.Config) { config.Impersonate.UserName = "nobody" })
	ref := b.example(cluster.Namespace(t))
	for i := range 3 {
		b.Post(ref, "Normal", "R", fmt.Sprint(i))
	}
	b.Eventually(b.Stats).Should(gomega.Equal(events.Stats{Failed: 3}))
	b.Expect(b.logs.With()).To(gomega.ConsistOf(gomega.ContainSubstring("allow the operator to create and patch events")))
}

func TestUnreachableAPIServerDoesNotBlockPosting(t *testing.T) {
	b := newBench(t, func(config *rest.Config) { config.Host = "https://127.0.0.1:1" })
	before := time.Now()
	for range 5000 {
		b.Post(corev1.ObjectReference{APIVersion: testenv.APIVersion, Kind: "KopfExample", Name: "x", Namespace: "default"}, "Normal", "R", "x")
	}
	b.Expect(time.Since(before)).To(gomega.BeNumerically("<", 5*time.Second), "posting waits")
	b.Expect(b.Stats().Dropped).To(gomega.BeNumerically(">=", 3900))
}
