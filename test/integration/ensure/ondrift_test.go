package ensure

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apitypes "k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/test/testenv"
)

// told is what a function of OnDrift was told.
type told struct {
	mu  sync.Mutex
	all []string
}

func (l *told) add(c *kopf.Drift) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.Deleted() {
		l.all = append(l.all, c.Key().Kind+" deleted")
		return
	}
	var fields []string
	for _, f := range c.Fields() {
		since := ""
		if !f.IsRemoved() && time.Since(f.Since) > time.Hour {
			since = " at an unknown time"
		}
		fields = append(fields, f.String()+since)
	}
	l.all = append(l.all, c.Key().Kind+" "+strings.Join(fields, ", "))
}

// take returns what the function was told since the last call.
func (l *told) take() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	taken := l.all
	l.all = nil
	return taken
}

// deciding returns a function of OnDrift that takes notes.
func (l *told) deciding(decide func(*kopf.Drift) (kopf.Resolution, error)) func(context.Context, *kopf.Drift) (kopf.Resolution, error) {
	return func(_ context.Context, c *kopf.Drift) (kopf.Resolution, error) {
		l.add(c)
		return decide(c)
	}
}

func restoring(*kopf.Drift) (kopf.Resolution, error) { return kopf.RestoreDrift(), nil }
func accepting(*kopf.Drift) (kopf.Resolution, error) { return kopf.AcceptDrift(), nil }

// as changes an object as another field manager does.
func (b *bench) as(manager string, obj *unstructured.Unstructured, merge string) {
	b.t.Helper()
	b.Expect(cluster.Client().Patch(b.t.Context(), obj.DeepCopy(), client.RawPatch(apitypes.MergePatchType, []byte(merge)), client.FieldOwner(manager))).To(gomega.Succeed())
}

// labeled returns the children with a label, so that the server completes the deployment.
func labeled(ctx context.Context, c *kopf.Change) ([]client.Object, error) {
	all, err := children(ctx, c)
	for _, child := range all {
		child.SetLabels(map[string]string{"app": c.Name(), "example.com/team": "blue"})
	}
	return all, err
}

func TestDriftIsToldWithItsManagers(t *testing.T) {
	t.Parallel()
	b, notes := newBench(t), &told{}
	b.Ensure(shops, labeled, kopf.ID("children"))
	b.OnDrift(shops, notes.deciding(restoring), kopf.ID("drift"))
	b.start()
	b.expectHandled(b.shop("one", map[string]any{"replicas": int64(1)}))
	b.expectRest()
	b.requests.Reset()

	b.as("kubectl-edit", b.of(configMaps, "one"), `{"data":{"theme":"light"}}`)
	b.Eventually(notes.take).Should(gomega.Equal([]string{"ConfigMap data.theme (by kubectl-edit)"}), b.story)
	b.expectChild(b.of(configMaps, "one"), testenv.HavePath("data.theme", "dark"))
	b.expectWrites(0, 1)

	b.as("autoscaler", b.of(deployments, "one"), `{"spec":{"replicas":7}}`)
	b.Eventually(notes.take).Should(gomega.Equal([]string{"Deployment spec.replicas (by autoscaler)"}), b.story)
	b.expectChild(b.of(deployments, "one"), testenv.HavePath("spec.replicas", int64(1)))
	b.expectWrites(0, 1)

	b.as("labeler", b.of(services, "one"), `{"metadata":{"labels":{"example.com/team":"red","app":null}}}`)
	b.Eventually(notes.take).Should(gomega.Equal([]string{"Service metadata.labels.app (removed), metadata.labels[example.com/team] (by labeler)"}), b.story)
	b.expectChild(b.of(services, "one"), testenv.HavePath("metadata.labels", gomega.HaveKeyWithValue("app", "one")))
	b.expectWrites(0, 1)

	web := `{"spec":{"template":{"spec":{"containers":[{"name":"web","image":"shop:2"}]}}}}`
	b.Expect(cluster.Client().Patch(t.Context(), b.of(deployments, "one"), client.RawPatch(apitypes.StrategicMergePatchType, []byte(web)), client.FieldOwner("kubectl-set"))).To(gomega.Succeed())
	b.Eventually(notes.take).Should(gomega.Equal([]string{"Deployment spec.template.spec.containers[name=web].image (by kubectl-set)"}), b.story)
	b.expectWrites(0, 1)

	b.as("other", b.of(deployments, "one"), `{"spec":{"paused":true}}`) // not a field of the handler
	b.remove(b.of(services, "one"))
	b.Eventually(notes.take).Should(gomega.Equal([]string{"Service deleted"}), b.story)
	b.expectChild(b.of(services, "one"), beOurs())
	b.expectWrites(0, 1)
	b.Expect(notes.take()).To(gomega.BeEmpty())
}

func TestAcceptedDriftSurvivesARestart(t *testing.T) {
	t.Parallel()
	b, notes := newBench(t), &told{}
	declare := func(r *kopf.Registry) {
		r.Ensure(shops, labeled, kopf.ID("children"))
		r.OnDrift(shops, notes.deciding(accepting), kopf.ID("drift"))
	}
	declare(b.Registry)
	operator := b.start()
	shop := b.expectHandled(b.shop("one", map[string]any{"replicas": int64(1)}))
	b.expectRest()
	b.requests.Reset()
	b.as("autoscaler", b.of(deployments, "one"), `{"spec":{"replicas":7}}`)
	b.as("kubectl-edit", b.of(deployments, "one"), `{"spec":{"template":{"spec":{"containers":[{"name":"web","image":"shop:2"}]}}}}`)
	b.Eventually(b.logged("Changes of a child by others are accepted.", "kubectl-edit")).ShouldNot(gomega.BeEmpty(), b.story)
	b.expectRest()
	_, writes := b.writes()
	b.Expect(writes).To(gomega.BeNumerically("<=", 2), b.story) // one for each of the changes, if they are told one by one
	b.Expect(b.current(b.of(deployments, "one"))).To(testenv.HavePath("spec.replicas", int64(7)))
	notes.take()

	operator.Stop()
	b.as("autoscaler", b.of(deployments, "one"), `{"spec":{"replicas":8}}`)
	b.as("kubectl-edit", b.of(configMaps, "one"), `{"data":{"theme":"light"}}`)
	b.requests.Reset()
	operator = b.restart(operator, declare)
	b.Eventually(notes.take).Should(gomega.Equal([]string{"ConfigMap data.theme (by kubectl-edit)"}), b.story)
	b.expectWrites(0, 1)
	b.Expect(b.current(b.of(deployments, "one"))).To(testenv.HavePath("spec.replicas", int64(8)))

	b.restart(operator, declare)
	b.expectWrites(0, 0)
	b.patch(shop, `{"spec":{"replicas":2}}`)
	b.expectChild(b.of(deployments, "one"), testenv.HavePath("spec.replicas", int64(2)))
	b.Expect(b.current(b.of(configMaps, "one"))).To(testenv.HavePath("data.theme", "light"))
	b.Expect(notes.take()).To(gomega.BeEmpty())
}

func TestNothingIsRestoredWhileTheDecisionFails(t *testing.T) {
	t.Parallel()
	b, notes := newBench(t), &told{}
	var decided atomic.Bool
	b.Ensure(shops, children, kopf.ID("children"), kopf.Backoff(20*time.Millisecond))
	b.OnDrift(shops, notes.deciding(func(*kopf.Drift) (kopf.Resolution, error) {
		if !decided.Load() {
			return kopf.Resolution{}, errors.New("the owner is asked")
		}
		return kopf.RestoreDrift(), nil
	}), kopf.ID("drift"))
	b.start()
	shop := b.expectHandled(b.shop("one", map[string]any{"replicas": int64(1)}))
	b.expectRest()
	b.as("kubectl-edit", b.of(configMaps, "one"), `{"data":{"theme":"light"}}`)
	b.Eventually(b.logged("will be retried", "handler drift", "the owner is asked")).ShouldNot(gomega.BeEmpty(), b.story)
	b.remove(b.of(services, "one"))
	var all []string
	b.Eventually(func() string {
		all = append(all, notes.take()...)
		return fmt.Sprint(all)
	}).Should(gomega.And(gomega.ContainSubstring("ConfigMap data.theme"), gomega.ContainSubstring("Service deleted")), b.story)
	b.Expect(b.current(b.of(configMaps, "one"))).To(testenv.HavePath("data.theme", "light"))
	b.Expect(cluster.Exists(b.of(services, "one"))()).To(gomega.BeFalse())
	b.Eventually(cluster.Current(shop)).Should(testenv.HavePath("metadata.annotations", gomega.HaveKey(prefix+"children.restore")), b.story)
	decided.Store(true)
	b.expectChild(b.of(configMaps, "one"), testenv.HavePath("data.theme", "dark"))
	b.expectChild(b.of(services, "one"), beOurs())
	b.Eventually(cluster.Current(shop)).Should(testenv.HavePath("metadata.annotations", gomega.Not(gomega.HaveKey(prefix+"children.restore"))), b.story)
}

// The event about the parent names both managers, once.
func TestFightWithAnotherControllerIsAnEventThatNamesBoth(t *testing.T) {
	t.Parallel()
	b, notes := newBench(t), &told{}
	b.Ensure(shops, theme, kopf.ID("children"))
	b.OnDrift(shops, notes.deciding(restoring), kopf.ID("drift"))
	b.start()
	b.expectHandled(b.shop("one", map[string]any{"x": int64(1)}))
	child := b.expectChild(b.of(configMaps, "theme"), beOurs())
	b.requests.Reset()
	events := func() ([]string, error) {
		var list corev1.EventList
		err := cluster.Client().List(t.Context(), &list, client.InNamespace(b.namespace))
		var found []string
		for _, event := range list.Items {
			if strings.Contains(event.Message, "keeps changing") {
				found = append(found, event.Message)
			}
		}
		return found, err
	}
	rounds := 0
	for found, err := events(); len(found) == 0; found, err = events() {
		b.Expect(err).NotTo(gomega.HaveOccurred())
		b.Expect(t.Context().Err()).NotTo(gomega.HaveOccurred())
		if theme, _, _ := unstructured.NestedString(b.current(child).Object, "data", "theme"); theme == "dark" {
			b.as("other-controller", child, `{"data":{"theme":"light"}}`)
			rounds++
		}
		b.Expect(rounds).To(gomega.BeNumerically("<=", 10), b.story)
	}
	b.Expect(rounds).To(gomega.BeNumerically("<=", 8), b.story) // the sixth restoration is reported, a while later
	b.Consistently(events, "300ms").Should(gomega.ConsistOf(gomega.And(
		gomega.ContainSubstring("data.theme (by other-controller)"), gomega.ContainSubstring(name),
	)))
}
