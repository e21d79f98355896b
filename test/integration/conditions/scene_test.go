package conditions

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/test/operators"
	"github.com/kopf-go/kopf/test/testenv"
)

var (
	errLater  = kopf.Temporary(errors.New("not yet"), 20*time.Millisecond)
	errBroken = kopf.Permanent(errors.New("broken"))
)

// verdict is what a person is told about an object.
type verdict struct {
	// ready is the end of "kubectl wait --for=condition=Ready".
	ready bool
	// status is the result of kstatus.
	status status.Status
}

var (
	isReady     = verdict{true, status.CurrentStatus}
	isWorking   = verdict{false, status.InProgressStatus}
	isStalled   = verdict{false, status.FailedStatus}
	terminating = verdict{false, status.TerminatingStatus}
)

// judge returns what kubectl and kstatus say about an object.
func judge(obj *unstructured.Unstructured) verdict {
	result, err := status.Compute(obj)
	if err != nil {
		return verdict{false, status.Status(err.Error())}
	}
	return verdict{isConditionMet(obj, "Ready"), result.Status}
}

// askKubectl expects that the real kubectl agrees that the object is ready or not, once for each of
// the two: isConditionMet repeats its decision because it is too slow for each time.
func (s *scene) askKubectl(want verdict) {
	s.t.Helper()
	if s.asked[want.ready] || !cluster.HasAddress() {
		return
	}
	s.asked[want.ready] = true
	timeout := "0s" // now
	if want.ready {
		timeout = "30s"
	}
	kind := strings.ToLower(s.object.GetKind()) + "." + s.object.GroupVersionKind().Group
	_, err := cluster.Kubectl(s.t, s.object.GetNamespace())("wait", "--for=condition=Ready", kind+"/"+s.object.GetName(), "--timeout="+timeout)
	if want.ready {
		s.Expect(err).NotTo(gomega.HaveOccurred())
	} else {
		s.Expect(err).To(gomega.MatchError(gomega.ContainSubstring("condition not met")))
	}
}

// isConditionMet decides as ConditionalWait of kubectl does: a condition counts only if it
// has seen the current generation.
func isConditionMet(obj *unstructured.Unstructured, kind string) bool {
	list, _, _ := unstructured.NestedSlice(obj.Object, "status", "conditions")
	for _, item := range list {
		condition, isMapping := item.(map[string]any)
		if !isMapping || !strings.EqualFold(fmt.Sprint(condition["type"]), kind) {
			continue
		}
		observed, isObserved, _ := unstructured.NestedInt64(condition, "observedGeneration")
		if !isObserved {
			observed, isObserved, _ = unstructured.NestedInt64(obj.Object, "status", "observedGeneration")
		}
		if isObserved && observed < obj.GetGeneration() {
			return false
		}
		return strings.EqualFold(fmt.Sprint(condition["status"]), "True")
	}
	return false
}

// scene is an operator whose handlers wait for the test, and one object.
type scene struct {
	*gomega.WithT
	*kopf.Registry
	t        *testing.T
	object   *unstructured.Unstructured
	config   *rest.Config
	requests *testenv.CountingTransport
	logs     *operators.Journal
	adjust   []func(*kopf.Options)
	operator *operators.Operator

	mu      sync.Mutex
	replies map[string]chan error
	called  map[string]chan struct{}
	asked   map[bool]bool // kubectl
}

func newScene(t *testing.T) *scene {
	t.Parallel()
	s := &scene{
		WithT: gomega.NewWithT(t), Registry: kopf.NewRegistry(), t: t, config: cluster.Config(), logs: &operators.Journal{},
		replies: map[string]chan error{}, called: map[string]chan struct{}{}, asked: map[bool]bool{},
	}
	s.requests = testenv.Count(s.config)
	s.object = testenv.NewObject("Widget", cluster.Namespace(t), "one", map[string]any{"size": int64(1)})
	s.object.SetAPIVersion("conditions.example.com/v1")
	s.Registry.Conditions(widgets)
	return s
}

func (s *scene) channels(id string) (called chan struct{}, replies chan error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.called[id] == nil {
		s.called[id], s.replies[id] = make(chan struct{}, 100), make(chan error, 100)
	}
	return s.called[id], s.replies[id]
}

// waiting returns a handler that waits for the reply of the test.
func (s *scene) waiting(id string) func(context.Context, *kopf.Change) error {
	called, replies := s.channels(id)
	return func(ctx context.Context, _ *kopf.Change) error {
		called <- struct{}{}
		select {
		case err := <-replies:
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// onChange declares a waiting handler of creations and updates.
func (s *scene) onChange(id string) {
	fn := s.waiting(id)
	s.OnCreate(widgets, fn, kopf.ID(id))
	s.OnUpdate(widgets, fn, kopf.ID(id))
}

// reply waits for the next call of a handler, and ends it.
func (s *scene) reply(id string, err error) {
	s.t.Helper()
	s.await(id)
	s.answer(id, err)
}

// await waits for the next call of a handler.
func (s *scene) await(id string) {
	s.t.Helper()
	called, _ := s.channels(id)
	s.Eventually(called).Should(gomega.Receive(), "no call of %s\n%s", id, s.logs)
}

func (s *scene) answer(id string, err error) {
	_, replies := s.channels(id)
	replies <- err
}

func (s *scene) start() {
	s.t.Helper()
	usual := func(o *kopf.Options) {
		o.Logger = s.logs.Logger()
		o.Settings.Execution.CheckpointInterval = time.Hour // the writes must not depend on the load
	}
	s.operator = operators.Start(s.t, s.config, s.object.GetNamespace(), s.Registry, slices.Concat([]func(*kopf.Options){usual}, s.adjust)...)
}

// begin starts the operator and creates the object.
func (s *scene) begin() {
	s.t.Helper()
	s.start()
	s.create()
}

func (s *scene) create() {
	s.t.Helper()
	s.Expect(cluster.Client().Create(s.t.Context(), s.object.DeepCopy())).To(gomega.Succeed())
}

// patch changes the object as another client does.
func (s *scene) patch(merge string) {
	s.t.Helper()
	s.Expect(cluster.Client().Patch(s.t.Context(), s.object.DeepCopy(), mergePatch(merge))).To(gomega.Succeed())
}

func (s *scene) current() *unstructured.Unstructured {
	s.t.Helper()
	obj, err := cluster.Current(s.object)()
	s.Expect(err).NotTo(gomega.HaveOccurred())
	return obj
}

// expect expects the verdict now, and waits for it if it is about something that has ended.
func (s *scene) expect(want verdict) {
	s.t.Helper()
	if want == isWorking {
		s.Expect(judge(s.current())).To(gomega.Equal(want), "%v\n%s", s.current().Object["status"], s.logs)
	} else {
		s.Eventually(func() verdict { return judge(s.current()) }).Should(gomega.Equal(want), func() string { return fmt.Sprint(s.current().Object["status"], "\n", s.logs) })
	}
	s.askKubectl(want)
}

// settle waits for the verdict, even if it is about something that goes on, and until the
// operator rests.
func (s *scene) settle(want verdict) {
	s.t.Helper()
	s.Eventually(cluster.AtRest(s.requests)).Should(gomega.BeTrue())
	s.expect(want)
}

// expectWrites expects the number of writes since the last time, at rest.
func (s *scene) expectWrites(main, ofStatus int) {
	s.t.Helper()
	s.Eventually(cluster.AtRest(s.requests)).Should(gomega.BeTrue())
	counts := s.requests.Snapshot()
	got := [2]int{counts[testenv.Key{Method: "PATCH", Target: "widgets"}], counts[testenv.Key{Method: "PATCH", Target: "widgets/status"}]}
	s.Expect(got).To(gomega.Equal([2]int{main, ofStatus}), "%s\n%s", s.requests, s.logs)
	s.requests.Reset()
}

// condition returns a condition as "True Reconciled: message".
func (s *scene) condition(kind string) string {
	s.t.Helper()
	list, _, _ := unstructured.NestedSlice(s.current().Object, "status", "conditions")
	for _, item := range list {
		if c, _ := item.(map[string]any); c["type"] == kind {
			return fmt.Sprintf("%v %v: %v", c["status"], c["reason"], c["message"])
		}
	}
	return ""
}

func mergePatch(text string) client.Patch {
	return client.RawPatch("application/merge-patch+json", []byte(text))
}
