package handling

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/model/stop"
	"github.com/kopf-go/kopf/test/testenv"
)

// request annotates the object with a request.
func (b *bench) request(obj *unstructured.Unstructured, verb, value string) {
	b.t.Helper()
	b.patch(obj, fmt.Sprintf(`{"metadata":{"annotations":{"%srequest-%s":%q}}}`, prefix, verb, value))
}

// withoutRequests is an object without the annotations of requests, as beHandled expects it.
func withoutRequests(obj func() (*unstructured.Unstructured, error)) func() (*unstructured.Unstructured, error) {
	return func() (*unstructured.Unstructured, error) {
		current, err := obj()
		if err != nil {
			return nil, err
		}
		annotations := current.GetAnnotations()
		for key := range annotations {
			if strings.HasPrefix(key, prefix+"request") {
				delete(annotations, key)
			}
		}
		current.SetAnnotations(annotations)
		return current, nil
	}
}

func (b *bench) expectHandledRequest(obj *unstructured.Unstructured, value string) {
	b.t.Helper()
	b.Eventually(cluster.Current(obj)).Should(testenv.HaveAnnotation(prefix+"requests-handled", gomega.ContainSubstring(value)), func() string { return b.logs.String() })
	b.Eventually(withoutRequests(cluster.Current(obj))).Should(beHandled(), func() string { return b.logs.String() })
}

func TestRetryIsHonoredOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.OnCreate(examples, b.noted("create", failing(2, long)), kopf.ID("create"))
	operator := b.start()
	obj := b.create("one", nil)
	b.Eventually(b.calls.All).Should(gomega.HaveLen(1))
	b.expectRest()
	b.requests.Reset()

	b.request(obj, "retry", "1 create")
	b.Eventually(b.calls.All).Should(gomega.Equal(attempts("create", 2)))
	b.expectRest()
	b.Expect(b.requests.Snapshot().Writes("kopfexamples")).To(gomega.Equal(1), b.requests.String) // as for any attempt
	b.Eventually(cluster.Events(obj)).Should(gomega.ContainElement("Normal RequestHonored: The handler create is called now as requested."))

	// Neither a restart nor a deployment pipeline repeats it.
	operator.Stop()
	b.start()
	b.request(obj, "retry", "1 create")
	b.patch(obj, `{"metadata":{"labels":{"seen":"yes"}}}`)
	b.expectRest()
	b.Expect(b.calls.All()).To(gomega.HaveLen(2))

	b.request(obj, "retry", "2 create")
	b.expectHandledRequest(obj, "2 create")
	b.Expect(b.calls.All()).To(gomega.Equal(attempts("create", 3)))
}

func TestRerunCallsAnEndedHandler(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	fail := true
	b.OnCreate(examples, func(_ context.Context, c *kopf.Change) error {
		b.calls.Note("create %s %d %d", c.Reason(), c.Retry(), len(c.Diff()))
		if c.Reason() == "resume" && fail {
			fail = false
			return kopf.Temporary(errNotYet, 10*time.Millisecond)
		}
		return nil
	}, kopf.ID("create"))
	b.OnCreate(examples, b.noted("other", succeed), kopf.ID("other"))
	b.OnUpdate(examples, b.noted("update", succeed), kopf.ID("update"))
	operator := b.start()
	obj := b.create("one", nil)
	b.expectHandled(obj)
	b.request(obj, "rerun", "1 create")
	b.expectHandledRequest(obj, "1 create")
	b.expectRest()
	operator.Stop()
	b.start()
	b.expectRest()
	b.Expect(b.calls.Of("create")).To(gomega.HaveExactElements(gomega.HavePrefix("create create 0"), "create resume 0 0", "create resume 1 0"))
	b.Expect(b.calls.Of("other")).To(gomega.Equal(attempts("other", 1)))
	b.Expect(b.calls.Of("update")).To(gomega.BeEmpty())
}

func TestSkipGivesAHandlerUp(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.OnCreate(examples, b.noted("create", failing(9, long)), kopf.ID("create"))
	b.OnDelete(examples, b.noted("delete", failing(9, long)), kopf.ID("delete"))
	b.start()
	obj := b.create("one", nil)
	b.Eventually(b.calls.Of).WithArguments("create").Should(gomega.HaveLen(1))
	b.request(obj, "skip", "1 create")
	b.expectHandledRequest(obj, "1 create")
	b.Eventually(cluster.Events(obj)).Should(gomega.ContainElement(gomega.HavePrefix("Normal CycleFinished: The creation is processed: 1 succeeded; 0 failed.")))

	b.remove(obj)
	b.Eventually(b.calls.Of).WithArguments("delete").Should(gomega.HaveLen(1))
	b.request(obj, "skip", "2 delete")
	b.Eventually(cluster.Events(obj)).Should(gomega.ContainElement(gomega.HavePrefix("Warning RequestRefused: The request to skip the handler delete is refused: nothing would clean up")))
	b.expectRest()
	b.request(obj, "skip", "3 delete abandon")
	b.expectGone(obj)
	b.Expect(b.calls.All()).To(gomega.Equal([]string{"create 0", "delete 0"}))
}

func TestSkipReleasesWhatAFailureOrAMisfitHolds(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.OnDelete(examples, b.noted("failing", fail(kopf.Permanent(errBroken))), kopf.ID("failing"), kopf.HoldOnFailure())
	kopf.For[*sized](b.Registry).OnDelete(b.sizes("typed"), kopf.ID("typed"))
	b.startTyped()
	obj := b.create("one", size("1Gi"))
	b.expectHandled(obj)
	b.resize(obj, "abc")
	b.expectHandled(obj)
	b.remove(obj)
	b.Eventually(b.misfitEvents(obj)).Should(gomega.ContainElement(gomega.ContainSubstring(`request-skip="$(date +%s) typed abandon"`)))
	b.request(obj, "skip", "1 typed abandon")
	b.Eventually(b.logged("The handler typed is skipped as requested.")).Should(gomega.HaveLen(1))
	b.expectRest()
	b.Expect(b.current(obj)).To(testenv.HaveFinalizer(finalizer))
	b.request(obj, "skip", "2 failing abandon")
	b.expectGone(obj)
	b.Expect(b.calls.All()).To(gomega.Equal([]string{"failing 0"}))
}

func TestRefusedRequestIsNotHonoredLater(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.OnUpdate(examples, b.noted("update", failing(1, quiet)), kopf.ID("update"))
	operator := b.start()
	obj := b.create("one", map[string]any{"field": "1"})
	b.expectHandled(obj)
	b.expectRest()
	b.requests.Reset()
	b.request(obj, "skip", "1 update")
	b.Eventually(cluster.Events(obj)).Should(gomega.ContainElement(gomega.HavePrefix("Warning RequestRefused: ")))
	b.expectRest()
	b.Expect(b.requests.Snapshot().Writes("kopfexamples")).To(gomega.Equal(1), b.requests.String)
	operator.Stop()
	b.start()
	b.patch(obj, `{"spec":{"field":"2"}}`)
	b.expectHandledRequest(obj, "1 update")
	b.Expect(b.calls.All()).To(gomega.Equal(attempts("update", 2)))
}

func TestMistypedRequestIsReportedWithoutAWrite(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.OnCreate(examples, b.noted("create", succeed), kopf.ID("create"))
	b.start()
	obj := b.create("one", nil)
	b.expectHandled(obj)
	b.expectRest()
	b.requests.Reset()
	b.request(obj, "retri", "1 create")
	b.Eventually(cluster.Events(obj)).Should(gomega.ContainElement("Warning RequestRefused: There is no request with the annotation " + prefix + "request-retri; did you mean request-retry?"))
	b.expectRest()
	b.Expect(b.requests.Snapshot().Writes("kopfexamples")).To(gomega.Equal(0), b.requests.String)
}

func TestSuspendedObjectIsLeftAlone(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.OnUpdate(examples, b.seeing("update", succeed), kopf.ID("update"))
	b.OnDelete(examples, b.noted("delete", succeed), kopf.ID("delete"))
	b.OnEvent(examples, func(_ context.Context, e *kopf.WatchEvent) error {
		b.calls.Note("event %s", e.Type())
		return nil
	}, kopf.ID("event"))
	b.Daemon(examples, func(_ context.Context, task *kopf.Task) error {
		b.calls.Note("daemon started")
		<-task.Stopped()
		b.calls.Note("stopped %t", task.StopReason().Has(stop.Paused))
		return nil
	}, kopf.ID("daemon"))
	operator := b.start()
	obj := b.create("one", map[string]any{"field": "1"})
	b.expectHandled(obj)
	b.Eventually(b.calls.Of).WithArguments("daemon").Should(gomega.HaveLen(1))
	b.request(obj, "suspend", "forever")
	b.Eventually(b.calls.Of).WithArguments("stopped").Should(gomega.Equal([]string{"stopped true"}))
	b.Eventually(cluster.Events(obj)).Should(gomega.ContainElement(gomega.HavePrefix("Normal ObjectSuspended: ")))
	b.expectRest()
	b.requests.Reset()
	called := len(b.calls.All())
	b.patch(obj, `{"spec":{"field":"2"}}`)
	operator.Stop()
	b.start()
	b.patch(obj, `{"spec":{"field":"3"}}`)
	b.expectRest()
	b.Expect(b.requests.Snapshot().Writes("kopfexamples")).To(gomega.BeZero(), b.requests.String)
	b.Expect(b.calls.All()).To(gomega.HaveLen(called))

	b.request(obj, "suspend", time.Now().Add(-time.Hour).UTC().Format(time.RFC3339))
	b.Eventually(b.calls.Of).WithArguments("update").Should(gomega.Equal([]string{"update 1->3"}))
	b.Eventually(b.calls.Of).WithArguments("daemon").Should(gomega.HaveLen(2))
	b.Expect(b.logged("The object is no longer suspended: its handlers are called again.")()).To(gomega.HaveLen(1))

	b.request(obj, "suspend", time.Now().Add(2*time.Second).UTC().Format(time.RFC3339))
	b.remove(obj)
	b.expectRest()
	b.expectGone(obj) // when the time is over
	b.Expect(b.calls.Of("delete")).To(gomega.Equal(attempts("delete", 1)))
}

func TestRequestsCanBeDisabled(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.OnCreate(examples, b.noted("create", failing(1, long)), kopf.ID("create"))
	b.start(func(o *kopf.Options) { o.Settings.Requests.Disabled = true })
	obj := b.create("one", nil)
	b.Eventually(b.calls.All).Should(gomega.HaveLen(1))
	b.request(obj, "retry", "1 create")
	b.request(obj, "suspend", "forever")
	b.expectRest()
	b.Expect(b.calls.All()).To(gomega.HaveLen(1))
	b.Expect(b.current(obj).GetAnnotations()).NotTo(gomega.HaveKey(prefix + "requests-handled"))
}

// The policy is the one of the documentation.
func TestPolicyRestrictsRequests(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	text, err := os.ReadFile("../../../docs/requests.md")
	b.Expect(err).NotTo(gomega.HaveOccurred())
	_, block, found := strings.Cut(string(text), "```yaml\n")
	b.Expect(found).To(gomega.BeTrue())
	block, _, _ = strings.Cut(block, "```")
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{}
	b.Expect(yaml.UnmarshalStrict([]byte(block), policy)).To(gomega.Succeed())
	b.Expect(cluster.Client().Create(t.Context(), policy)).To(gomega.Succeed())
	binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: policy.Name},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: policy.Name, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
		},
	}
	b.Expect(cluster.Client().Create(t.Context(), binding)).To(gomega.Succeed())
	b.Expect(cluster.Client().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: b.namespace},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "alice"}},
	})).To(gomega.Succeed())

	config := cluster.Config()
	config.Impersonate = rest.ImpersonationConfig{UserName: "alice"}
	alice, err := client.New(config, client.Options{})
	b.Expect(err).NotTo(gomega.HaveOccurred())
	obj := b.create("one", nil)
	change := func(annotation string) func() error {
		return func() error {
			return alice.Patch(t.Context(), obj.DeepCopy(), mergePatch(`{"metadata":{"annotations":{`+annotation+`}}}`))
		}
	}
	tries := 0 // until the API server knows the policy
	b.Eventually(func() error {
		tries++
		return change(fmt.Sprintf(`"kopf.zalando.org/request-retry":"try-%d a"`, tries))()
	}).Should(gomega.MatchError(gomega.ContainSubstring("only administrators may send requests")))
	b.Expect(change(`"note":"1"`)()).To(gomega.Succeed())
	b.request(obj, "retry", "2 a")
	b.Expect(change(`"note":"2"`)()).To(gomega.Succeed())
	b.Expect(change(`"kopf.zalando.org/request-retry":"3 a"`)()).NotTo(gomega.Succeed())
}

// The handler has run, but its operator does not learn that the outcome was stored.
func TestRequestIsHonoredOnceAlthoughTheAnswerIsLost(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	faults := testenv.Strike(b.config)
	b.OnCreate(examples, b.noted("create", failing(2, long)), kopf.ID("create"))
	operator := b.start()
	obj := b.create("one", nil)
	b.Eventually(cluster.Current(obj)).Should(testenv.HaveAnnotation(prefix+"create", gomega.ContainSubstring("not yet")))
	b.expectRest()
	faults.Begin(testenv.Lose, func(r testenv.Request) bool { return r.Method == http.MethodPatch && r.Resource == "kopfexamples" })
	b.request(obj, "retry", "1 create")
	b.Eventually(cluster.Current(obj)).Should(testenv.HaveAnnotation(prefix+"requests-handled", `{"retry":"1 create"}`))
	faults.Heal()
	b.expectRest()
	operator.Stop()
	b.start()
	b.expectRest()
	b.Expect(b.calls.All()).To(gomega.Equal(attempts("create", 2)))
}
