package scopes

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/test/operators"
	"github.com/kopf-go/kopf/test/testenv"
)

// manyPods is the number of pods, of which the operator is for some. KOPF_TEST_PODS is another number.
const manyPods, somePods = 2000, 20

// podNamed returns a pod. One that is for the operator has the label app=web.
func podNamed(namespace, name, app string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"app": app}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "example.com/main:1"}}},
	}
}

// createPods creates pods with many connections at once.
func createPods(t *testing.T, g *gomega.WithT, namespace string, all int) {
	t.Helper()
	config := cluster.Config()
	config.QPS = -1
	fast, err := client.New(config, client.Options{Scheme: admin(t).Scheme()})
	g.Expect(err).NotTo(gomega.HaveOccurred())
	numbers := make(chan int)
	var creators sync.WaitGroup
	var failed atomic.Value
	for range 32 {
		creators.Go(func() {
			for n := range numbers {
				app := "db"
				if n%(all/somePods) == 0 {
					app = "web"
				}
				if err := fast.Create(t.Context(), podNamed(namespace, fmt.Sprintf("pod-%d", n), app)); err != nil {
					failed.Store(err)
				}
			}
		})
	}
	for n := range all {
		numbers <- n
	}
	close(numbers)
	creators.Wait()
	g.Expect(failed.Load()).To(gomega.BeNil())
}

// received counts the bytes of the lists and watches of pods that an operator receives.
type received struct{ bytes atomic.Int64 }

// through returns a configuration whose requests are counted.
func (r *received) through(config *rest.Config) *rest.Config {
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return testenv.RoundTripper(func(request *http.Request) (*http.Response, error) {
			response, err := next.RoundTrip(request)
			if err == nil && strings.HasSuffix(request.URL.Path, "/pods") {
				response.Body = countedBody{response.Body, &r.bytes}
			}
			return response, err
		})
	})
	return config
}

type countedBody struct {
	io.ReadCloser

	bytes *atomic.Int64
}

// Read counts what it reads.
func (b countedBody) Read(into []byte) (int, error) {
	n, err := b.ReadCloser.Read(into)
	b.bytes.Add(int64(n))
	return n, err
}

// An operator for some pods among many pays for these: it receives, keeps, indexes, and handles no others. A pod can leave
// and return, and it can be deleted while it is away.
func TestSomePodsOfMany(t *testing.T) {
	t.Parallel()
	g, heard, registry, namespace := gomega.NewWithT(t), &calls{}, kopf.NewRegistry(), cluster.Namespace(t)
	all := manyPods
	if text := os.Getenv("KOPF_TEST_PODS"); text != "" {
		var err error
		all, err = strconv.Atoi(text)
		g.Expect(err).NotTo(gomega.HaveOccurred())
	}
	createPods(t, g, namespace, all)
	pods := kopf.Resource("v1", "pods")
	names := kopf.NewIndex(registry, pods, indexed, kopf.ID("names"))
	for id, declare := range map[string]func(kopf.Selector, func(context.Context, *kopf.Change) error, ...kopf.ChangeOption){
		"create": registry.OnCreate, "resume": registry.OnResume, "update": registry.OnUpdate, "delete": registry.OnDelete,
	} {
		declare(pods, func(_ context.Context, c *kopf.Change) error {
			heard.note("%s %s", id, c.Name())
			return nil
		}, kopf.ID(id))
	}
	registry.OnEvent(pods, func(_ context.Context, e *kopf.WatchEvent) error {
		if e.Type() == "DELETED" {
			heard.note("gone %s", e.Name())
		}
		return nil
	}, kopf.ID("event"))
	registry.Daemon(pods, func(_ context.Context, d *kopf.Task) error {
		<-d.Stopped()
		heard.note("stopped %s %s", d.Name(), d.StopReason())
		return nil
	}, kopf.ID("daemon"))

	var traffic received
	operators.Start(t, traffic.through(cluster.Config()), namespace, registry, func(o *kopf.Options) {
		o.Settings.Watching.LabelSelectors = map[string]string{"pods": "app=web"}
		o.Settings.Posting.Disabled = true
	})
	g.Eventually(func() int { return heard.with("create pod-") }).Should(gomega.Equal(somePods))
	g.Expect(names.Len()).To(gomega.Equal(somePods))
	perPod := traffic.bytes.Load() / somePods
	t.Logf("%d of %d pods: %d bytes for each of the %d", somePods, all, perPod, somePods)
	g.Expect(perPod).To(gomega.BeNumerically("<", 64<<10), "a few versions of each")

	one := podNamed(namespace, "pod-0", "web")
	current := func() *corev1.Pod {
		read := &corev1.Pod{}
		g.Expect(client.IgnoreNotFound(admin(t).Get(t.Context(), client.ObjectKeyFromObject(one), read))).To(gomega.Succeed())
		return read
	}
	label := func(app string) {
		t.Helper()
		g.Expect(admin(t).Patch(t.Context(), one, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"app":"`+app+`"}}}`)))).To(gomega.Succeed())
	}
	const finalizer = "kopf.zalando.org/KopfFinalizerMarker"
	g.Expect(current().Finalizers).To(gomega.ConsistOf(finalizer))
	label("db")
	g.Eventually(func() []string { return current().Finalizers }).Should(gomega.BeEmpty())
	g.Expect(heard.with("stopped pod-0 mismatch")).To(gomega.Equal(1))
	g.Expect(names.Len()).To(gomega.Equal(somePods - 1))
	label("web")
	g.Eventually(func() []string { return current().Finalizers }).Should(gomega.ConsistOf(finalizer))
	g.Eventually(func() int { return heard.with("resume pod-0") }).Should(gomega.Equal(1))
	label("db")
	g.Eventually(func() []string { return current().Finalizers }).Should(gomega.BeEmpty())
	immediately := client.GracePeriodSeconds(0)
	g.Expect(admin(t).Delete(t.Context(), one, immediately)).To(gomega.Succeed())
	g.Eventually(func() string { return current().Name }).Should(gomega.BeEmpty())

	other := podNamed(namespace, fmt.Sprintf("pod-%d", all/somePods), "web")
	g.Expect(admin(t).Delete(t.Context(), other, immediately)).To(gomega.Succeed())
	g.Eventually(func() int { return heard.with("gone " + other.Name) }).Should(gomega.Equal(1))
	lines := heard.all()
	for _, unheard := range []string{"gone pod-0", "delete pod-0", "update pod-0"} {
		g.Expect(slices.Contains(lines, unheard)).To(gomega.BeFalse(), unheard)
	}
	g.Expect(heard.with("create pod-0")).To(gomega.Equal(1))
	g.Expect(slices.Contains(lines, "delete "+other.Name)).To(gomega.BeTrue())
	g.Expect(heard.with("create ")).To(gomega.Equal(somePods))
}

// Pods are selected by their fields, too. They leave when they have ended.
func TestPodsAreSelectedByFields(t *testing.T) {
	t.Parallel()
	g, heard, registry, namespace := gomega.NewWithT(t), &calls{}, kopf.NewRegistry(), cluster.Namespace(t)
	pods := kopf.Resource("v1", "pods")
	registry.OnCreate(pods, heard.creations, kopf.ID("create"))
	registry.OnDelete(pods, func(context.Context, *kopf.Change) error { return nil }, kopf.ID("delete"))
	operators.Start(t, cluster.Config(), namespace, registry, func(o *kopf.Options) {
		o.Settings.Watching.FieldSelectors = map[string]string{"pods": "spec.nodeName=a,status.phase!=Succeeded"}
	})
	for _, node := range []string{"a", "b"} {
		pod := podNamed(namespace, "on-"+node, "web")
		pod.Spec.NodeName = node
		g.Expect(admin(t).Create(t.Context(), pod)).To(gomega.Succeed())
	}
	finalizers := func(name string) func() []string {
		return func() []string {
			read := &corev1.Pod{}
			g.Expect(admin(t).Get(t.Context(), types.NamespacedName{Namespace: namespace, Name: name}, read)).To(gomega.Succeed())
			return read.Finalizers
		}
	}
	g.Eventually(heard.all).Should(gomega.ConsistOf(namespace + "/on-a"))
	g.Eventually(finalizers("on-a")).ShouldNot(gomega.BeEmpty())
	g.Expect(finalizers("on-b")()).To(gomega.BeEmpty())
	ended := podNamed(namespace, "on-a", "web")
	g.Expect(admin(t).Status().Patch(t.Context(), ended, client.RawPatch(types.MergePatchType, []byte(`{"status":{"phase":"Succeeded"}}`)))).To(gomega.Succeed())
	g.Eventually(finalizers("on-a")).Should(gomega.BeEmpty())
	g.Expect(heard.all()).To(gomega.HaveLen(1))
}

// The API server refuses fields that it does not know. Other resources are handled.
func TestUnknownFieldOfASelectorIsSaidOnce(t *testing.T) {
	t.Parallel()
	g, heard, registry, namespace := gomega.NewWithT(t), &calls{}, kopf.NewRegistry(), cluster.Namespace(t)
	registry.OnCreate(examples, heard.creations, kopf.ID("create"))
	registry.OnCreate(kopf.Resource("v1", "pods"), heard.creations, kopf.ID("create_pod"))
	running := operators.Start(t, cluster.Config(), namespace, registry, func(o *kopf.Options) {
		o.Logger = heard.logger()
		o.Settings.Watching.FieldSelectors = map[string]string{"kopfexamples": "spec.field=a"}
		o.Settings.Watching.ReconnectLimit = o.Settings.Watching.ReconnectBackoff
	})
	g.Expect(admin(t).Create(t.Context(), podNamed(namespace, "one", "web"))).To(gomega.Succeed())
	g.Eventually(func() int { return heard.with(namespace + "/one") }).Should(gomega.BeNumerically(">", 0))
	const refused = "The API server refuses the selectors for the objects, so none is watched or handled"
	g.Eventually(func() int { return heard.with(refused, "spec.field=a", "not supported") }).Should(gomega.Equal(1))
	failing := func() error {
		for _, w := range running.State().Watches {
			if w.Resource == "kopfexamples.v1.kopf.dev" && !w.Listed {
				return w.Err
			}
		}
		return errors.New("it is watched")
	}
	g.Eventually(func() bool { return apierrors.IsBadRequest(failing()) }).Should(gomega.BeTrue())
	g.Consistently(func() int { return heard.with(refused) }, "500ms").Should(gomega.Equal(1))
}
