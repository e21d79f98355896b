package throttling

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	crmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/test/operators"
	"github.com/kopf-go/kopf/test/testenv"
)

// limitSeats lets the API server process few requests of a user at the same time, and refuse others:
// 5 of about 250 shares of its 100 seats. It permits everything else to the user. Requests of
// administrators are never limited.
func limitSeats(t *testing.T, g *gomega.WithT, user string) {
	t.Helper()
	create := func(object client.Object) {
		g.Expect(cluster.Client().Create(t.Context(), object)).To(gomega.Succeed())
		t.Cleanup(func() {
			g.Expect(cluster.Client().Delete(context.WithoutCancel(t.Context()), object)).To(gomega.Succeed())
		})
	}
	create(&rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: user},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
	})
	create(&flowcontrolv1.PriorityLevelConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: user},
		Spec: flowcontrolv1.PriorityLevelConfigurationSpec{
			Type: flowcontrolv1.PriorityLevelEnablementLimited,
			Limited: &flowcontrolv1.LimitedPriorityLevelConfiguration{
				NominalConcurrencyShares: new(int32(5)), LendablePercent: new(int32(0)), BorrowingLimitPercent: new(int32(0)),
				LimitResponse: flowcontrolv1.LimitResponse{Type: flowcontrolv1.LimitResponseTypeReject},
			},
		},
	})
	all := []string{flowcontrolv1.ResourceAll}
	create(&flowcontrolv1.FlowSchema{
		ObjectMeta: metav1.ObjectMeta{Name: user},
		Spec: flowcontrolv1.FlowSchemaSpec{
			PriorityLevelConfiguration: flowcontrolv1.PriorityLevelConfigurationReference{Name: user},
			MatchingPrecedence:         10,
			Rules: []flowcontrolv1.PolicyRulesWithSubjects{{
				Subjects:      []flowcontrolv1.Subject{{Kind: flowcontrolv1.SubjectKindUser, User: &flowcontrolv1.UserSubject{Name: user}}},
				ResourceRules: []flowcontrolv1.ResourcePolicyRule{{Verbs: all, APIGroups: all, Resources: all, ClusterScope: true, Namespaces: all}},
			}},
		},
	})
}

// answers counts the answers of the API server.
type answers struct{ all, refused atomic.Int64 }

func (a *answers) wrap(next http.RoundTripper) http.RoundTripper { return counted{next, a} }

type counted struct {
	next http.RoundTripper
	*answers
}

func (c counted) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := c.next.RoundTrip(request)
	if err == nil {
		c.all.Add(1)
		if response.StatusCode == http.StatusTooManyRequests {
			c.refused.Add(1)
		}
	}
	return response, err
}

// restrict makes a connection as a user with few seats.
func restrict(t *testing.T, g *gomega.WithT) (*rest.Config, *answers) {
	limitSeats(t, g, "few-seats")
	var seen answers
	config := cluster.Config()
	config.Impersonate.UserName = "few-seats"
	config.Wrap(seen.wrap)
	// Until the API server obeys, it refuses nothing.
	limited := func() bool {
		client, err := rest.HTTPClientFor(config)
		g.Expect(err).NotTo(gomega.HaveOccurred())
		before := seen.refused.Load()
		var requests sync.WaitGroup
		for range 50 {
			requests.Go(func() {
				if response, err := client.Get(config.Host + "/api/v1/nodes"); err == nil {
					_ = response.Body.Close()
				}
			})
		}
		requests.Wait()
		return seen.refused.Load() > before
	}
	g.Eventually(limited).Should(gomega.BeTrue(), "the API server refuses nothing")
	seen.all.Store(0)
	seen.refused.Store(0)
	return config, &seen
}

// The API server has few seats for the operator, and refuses further requests. All objects of a burst are
// handled, an object of another resource is handled, too, and few requests are refused.
func TestABurstOnAServerWithFewSeats(t *testing.T) {
	g := gomega.NewWithT(t)
	config, seen := restrict(t, g)
	namespace := cluster.Namespace(t)
	registry := kopf.NewRegistry()
	registry.OnCreate(kopf.Resource("kopf.dev", "v1", "kopfexamples"), func(_ context.Context, c *kopf.Change) error {
		c.SetResult("done")
		return nil
	}, kopf.ID("create_fn"))
	var others atomic.Int64
	registry.OnCreate(kopf.Resource("", "v1", "configmaps"), func(_ context.Context, c *kopf.Change) error {
		if c.Name() == "other" {
			others.Add(1)
		}
		return nil
	}, kopf.ID("other_fn"))
	operators.Start(t, config, namespace, registry, func(o *kopf.Options) {
		o.Settings.Posting.Disabled = true
		o.Settings.Name = "few-seats"
	})

	const objects = 400
	var burst sync.WaitGroup
	for worker := range 8 {
		burst.Go(func() {
			for n := worker; n < objects; n += 8 {
				if err := cluster.Client().Create(t.Context(), testenv.NewObject("KopfExample", namespace, fmt.Sprint("object-", n), nil)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	burst.Wait()
	other := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "other"}}
	g.Expect(cluster.Client().Create(t.Context(), other)).To(gomega.Succeed())
	handled := func() (count int) {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(testenv.NewObject("KopfExampleList", "", "", nil).GroupVersionKind())
		g.Expect(cluster.Client().List(t.Context(), list, client.InNamespace(namespace))).To(gomega.Succeed())
		for i := range list.Items {
			if list.Items[i].Annotations[handledAnnotation] != "" {
				count++
			}
		}
		return count
	}
	current := &unstructured.Unstructured{}
	current.SetAPIVersion("v1")
	current.SetKind("ConfigMap")
	g.Eventually(func() string {
		g.Expect(cluster.Client().Get(t.Context(), client.ObjectKeyFromObject(other), current)).To(gomega.Succeed())
		return current.GetAnnotations()[handledAnnotation]
	}).ShouldNot(gomega.BeEmpty())
	g.Eventually(handled).WithTimeout(2 * testenv.Patience).Should(gomega.Equal(objects))

	all, refused := seen.all.Load(), seen.refused.Load()
	t.Logf("%d of %d requests are refused", refused, all)
	g.Expect(refused).To(gomega.BeNumerically(">", 0), "the API server has enough seats: the test shows nothing")
	g.Expect(float64(refused) / float64(all)).To(gomega.BeNumerically("<", 0.02))
	g.Expect(others.Load()).To(gomega.BeEquivalentTo(1))
	g.Expect(closedByRefusals()).To(gomega.BeNumerically(">", 0))
}

// closedByRefusals returns how often the window has closed because of refusals.
func closedByRefusals() (times float64) {
	families, _ := crmetrics.Registry.Gather()
	for _, family := range families {
		if family.GetName() != "kopf_api_requests_window_closed_total" {
			continue
		}
		for _, metric := range family.GetMetric() {
			for _, label := range metric.GetLabel() {
				if label.GetValue() == "refused" {
					times += metric.GetCounter().GetValue()
				}
			}
		}
	}
	return times
}
