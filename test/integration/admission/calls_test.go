package admission

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http/httptest"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/internal/handlertest"
	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/model/memo"
	"github.com/kopf-go/kopf/pkg/model/selector"
	"github.com/kopf-go/kopf/pkg/webhook"
	"github.com/kopf-go/kopf/test/testenv"
)

func TestObjectsWithoutTheLabelsAreNotReviewed(t *testing.T) {
	t.Parallel()
	g := gomega.NewWithT(t)
	filter := handler.Labels(map[string]kopf.Matcher{"tier": kopf.Equal("gold"), "test": kopf.Absent(), "owner": kopf.Present()})
	d, err := handler.Validate(examples, handlertest.Function(func(context.Context, *handler.Call) error { return nil }), filter, handler.ID("fn"))
	g.Expect(err).NotTo(gomega.HaveOccurred())
	var seen notes
	registry := kopf.NewRegistry()
	registry.OnValidate(examples, func(_ context.Context, a *kopf.Admission) error { seen.add(a.Name()); return nil }, kopf.ID("look"))
	o := start(t, registry)
	o.validating(t, hook{path: "look", selector: d.LabelSelector(), operations: []operation{"CREATE"}})
	for name, labels := range map[string]map[string]string{
		"none": nil, "silver": {"tier": "silver", "owner": "me"}, "gold": {"tier": "gold", "owner": "me"},
		"tested": {"tier": "gold", "owner": "me", "test": "yes"}, "unowned": {"tier": "gold"},
	} {
		object := o.object(name, nil)
		object.SetLabels(labels)
		g.Expect(cluster.Client().Create(t.Context(), object)).To(gomega.Succeed())
	}
	g.Expect(seen.all()).To(gomega.Equal([]string{"gold"}))
}

func TestMemosAreSharedWithOtherHandlersOnceTheObjectIsKnown(t *testing.T) {
	t.Parallel()
	g := gomega.NewWithT(t)
	visits := memo.New(nil, func(*atomic.Int64) *atomic.Int64 { return new(atomic.Int64) })
	var handled atomic.Int64
	registry := kopf.NewRegistry()
	registry.OnCreate(examples, func(_ context.Context, c *kopf.Change) error {
		visits.Of(c).Add(10)
		handled.Add(1)
		return nil
	}, kopf.ID("create"))
	registry.OnValidate(examples, func(_ context.Context, a *kopf.Admission) error {
		a.Warn(fmt.Sprintf("%s %d", a.Operation(), visits.Of(a).Add(1)))
		return nil
	}, kopf.ID("count"))
	o := start(t, registry)
	o.validating(t, hook{path: "count"})
	g.Expect(cluster.Client().Create(t.Context(), o.object("other", nil))).To(gomega.Succeed())
	c, warnings := newClientWithWarnings(t)
	object := o.object("one", nil)
	g.Expect(c.Create(t.Context(), object)).To(gomega.Succeed())
	g.Eventually(cluster.Current(object)).Should(testenv.HaveAnnotation("kopf.zalando.org/last-handled-configuration", gomega.Not(gomega.BeEmpty())))
	label := func(value string) {
		g.Eventually(func() error {
			current, err := cluster.Current(object)()
			if err == nil {
				current.SetLabels(map[string]string{"a": value})
				err = c.Update(t.Context(), current)
			}
			return err
		}).Should(gomega.Succeed())
	}
	label("b")
	label("c")
	all := warnings.all()
	g.Expect(all[0]).To(gomega.Equal("CREATE 1"))
	// The operator's own writes are also reviewed and counted.
	g.Expect(all[1:]).To(gomega.HaveEach(gomega.MatchRegexp(`^UPDATE 1\d$`)))
	g.Expect(all[1:]).To(gomega.Satisfy(slices.IsSorted[[]string]))
}

func TestAdmissionHandlersAloneWatchNothing(t *testing.T) {
	t.Parallel()
	g := gomega.NewWithT(t)
	var counter *testenv.CountingTransport
	registry := kopf.NewRegistry()
	registry.OnValidate(examples, checkSize)
	o := start(t, registry, func(config *rest.Config) { counter = testenv.Count(config) })
	o.validating(t, hook{path: "checkSize"})
	g.Expect(cluster.Client().Create(t.Context(), o.object("large", map[string]any{"size": int64(101)}))).To(haveCode(499, "too large"))
	for _, request := range counter.Requests() {
		g.Expect(request.Resource).NotTo(gomega.Equal("kopfexamples"), "%s", request)
	}
}

func TestAPIServerRetriesUntilTheOperatorIsReady(t *testing.T) {
	t.Parallel()
	g := gomega.NewWithT(t)
	declared := kopf.NewRegistry()
	declared.OnValidate(examples, rejectProbe, kopf.Labels(map[string]kopf.Matcher{probeLabel: kopf.Present()}))
	probes, err := declared.Declarations().Handlers(cluster.Client().Scheme())
	g.Expect(err).NotTo(gomega.HaveOccurred())
	var refused, refusals atomic.Int64
	server := httptest.NewTLSServer(webhook.New(webhook.Options{
		Handlers: probes,
		Resources: func(gvr schema.GroupVersionResource) (selector.Resource, bool) {
			return selector.Resource{Group: gvr.Group, Version: gvr.Version, Plural: gvr.Resource, Preferred: true}, true
		},
		CheckReady: func(context.Context) error {
			if refusals.Add(-1) >= 0 {
				refused.Add(1)
				return errors.New("a moment")
			}
			return nil
		},
	}))
	t.Cleanup(server.Close)
	o := &operator{url: server.URL, namespace: cluster.Namespace(t), ca: pem.EncodeToMemory(
		&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})}
	o.validating(t)
	refusals.Store(1)
	g.Expect(cluster.Client().Create(t.Context(), o.object("one", nil))).To(gomega.Succeed())
	g.Expect(refused.Load()).To(gomega.Equal(int64(1)))
}

func TestTwoOperatorsCannotServeAtOnePath(t *testing.T) {
	t.Parallel()
	g := gomega.NewWithT(t)
	mgr, _ := newManager(t)
	add := func(id string) error {
		r := kopf.NewRegistry()
		r.OnValidate(examples, checkSize, kopf.ID(id))
		_, err := kopf.Add(mgr, kopf.Options{Registry: r})
		return err
	}
	g.Expect(add("one")).To(gomega.Succeed())
	g.Expect(add("two")).To(gomega.MatchError(gomega.ContainSubstring("cannot be served at /kopf")))
}
