package testenv

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestNewRequestFindsTheTarget(t *testing.T) {
	tests := map[string]struct {
		method, url string
		want        Request
	}{
		"an object":                {"PATCH", "/apis/kopf.dev/v1/namespaces/ns/kopfexamples/one", Request{Method: "PATCH", Group: "kopf.dev", Resource: "kopfexamples", Namespace: "ns", Name: "one"}},
		"its subresource":          {"PATCH", "/apis/kopf.dev/v1/namespaces/ns/kopfexamples/one/status?x=y", Request{Method: "PATCH", Group: "kopf.dev", Resource: "kopfexamples", Subresource: "status", Namespace: "ns", Name: "one"}},
		"a cluster-wide object":    {"PUT", "/apis/kopf.dev/v1/kopfclusters/one", Request{Method: "PUT", Group: "kopf.dev", Resource: "kopfclusters", Name: "one"}},
		"a core object":            {"GET", "/api/v1/namespaces/ns/pods/one", Request{Method: "GET", Resource: "pods", Namespace: "ns", Name: "one"}},
		"a list":                   {"GET", "/api/v1/namespaces/ns/pods?limit=500", Request{Method: "LIST", Resource: "pods", Namespace: "ns"}},
		"a list in all namespaces": {"GET", "/api/v1/pods", Request{Method: "LIST", Resource: "pods"}},
		"a watch":                  {"GET", "/api/v1/pods?watch=true", Request{Method: "WATCH", Resource: "pods"}},
		"a namespace":              {"GET", "/api/v1/namespaces/ns", Request{Method: "GET", Resource: "namespaces", Name: "ns"}},
		"a namespace's status":     {"PUT", "/api/v1/namespaces/ns/status", Request{Method: "PUT", Resource: "namespaces", Name: "ns", Subresource: "status"}},
		"the list of namespaces":   {"GET", "/api/v1/namespaces", Request{Method: "LIST", Resource: "namespaces"}},
		"discovery":                {"GET", "/apis/kopf.dev/v1", Request{Method: "GET"}},
		"the version":              {"GET", "/version", Request{Method: "GET"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			sent, err := http.NewRequest(test.method, "https://server"+test.url, nil)
			if err != nil {
				t.Fatal(err)
			}
			test.want.URI = test.url
			gomega.NewWithT(t).Expect(newRequest(sent)).To(gomega.Equal(test.want))
		})
	}
}

func TestRequestsAreCounted(t *testing.T) {
	g, ctx := gomega.NewWithT(t), t.Context()
	config := cluster.Config()
	requests := Count(config)
	counted, err := client.New(config, client.Options{})
	g.Expect(err).NotTo(gomega.HaveOccurred())
	object := NewObject("KopfExample", cluster.Namespace(t), "one", nil)
	g.Expect(counted.Create(ctx, object)).To(gomega.Succeed())
	patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"a":1},"status":{"b":2}}`))
	g.Expect(counted.Patch(ctx, object, patch)).To(gomega.Succeed())
	g.Expect(counted.Status().Patch(ctx, object, patch)).To(gomega.Succeed())
	g.Expect(counted.Get(ctx, client.ObjectKey{Name: "none", Namespace: "none"}, object.DeepCopy())).NotTo(gomega.Succeed())
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(object.GroupVersionKind())
	g.Expect(counted.List(ctx, list)).To(gomega.Succeed())
	event := &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Name: "one", Namespace: object.GetNamespace()},
		InvolvedObject: corev1.ObjectReference{Name: "one", Namespace: object.GetNamespace()},
	}
	g.Expect(counted.Create(ctx, event)).To(gomega.Succeed())

	snapshot := requests.Snapshot()
	g.Expect(snapshot).To(gomega.SatisfyAll(
		gomega.HaveKeyWithValue(Key{"POST", "kopfexamples"}, 1),
		gomega.HaveKeyWithValue(Key{"PATCH", "kopfexamples"}, 1),
		gomega.HaveKeyWithValue(Key{"PATCH", "kopfexamples/status"}, 1),
		gomega.HaveKeyWithValue(Key{"GET", "kopfexamples"}, 1),
		gomega.HaveKeyWithValue(Key{"LIST", "kopfexamples"}, 1),
	), "%s", requests)
	g.Expect(snapshot.Writes("kopfexamples")).To(gomega.Equal(2))
	g.Expect(snapshot.Writes("events")).To(gomega.BeZero())
	g.Expect(requests.Apart()).To(gomega.Equal(Snapshot{{"POST", "events"}: 1}))
	g.Expect(requests.String()).To(gomega.ContainSubstring(`/kopfexamples/one/status 200 {"spec":{"a":1},"status":{"b":2}}`))
	g.Expect(requests.String()).To(gomega.ContainSubstring("/kopfexamples/none 404"))

	requests.Reset()
	g.Expect(requests.Snapshot()).To(gomega.BeEmpty())
}

func TestRequestsWithoutAResponseAreCounted(t *testing.T) {
	g := gomega.NewWithT(t)
	requests := &CountingTransport{}
	broken := errors.New("broken")
	transport := requests.Wrap(RoundTripper(func(*http.Request) (*http.Response, error) { return nil, broken }))
	sent, err := http.NewRequest(http.MethodPatch, "https://server/api/v1/namespaces/ns/pods/one", strings.NewReader("{}"))
	g.Expect(err).NotTo(gomega.HaveOccurred())
	_, err = transport.RoundTrip(sent) //nolint:bodyclose // there is no response
	g.Expect(err).To(gomega.MatchError(broken))
	g.Expect(requests.String()).To(gomega.Equal("PATCH /api/v1/namespaces/ns/pods/one no answer {}\n"))
	g.Expect(requests.Snapshot().String()).To(gomega.Equal("1 PATCH pods"))
}

// A test sees what a request has done, and resets the counts before the client has the response.
func TestRequestsThatWereSentBeforeTheResetAreNotCounted(t *testing.T) {
	g := gomega.NewWithT(t)
	requests := &CountingTransport{}
	transport := requests.Wrap(RoundTripper(func(*http.Request) (*http.Response, error) {
		requests.Reset()
		return &http.Response{StatusCode: http.StatusOK}, nil
	}))
	sent, err := http.NewRequest(http.MethodPatch, "https://server/api/v1/namespaces/ns/pods/one", strings.NewReader("{}"))
	g.Expect(err).NotTo(gomega.HaveOccurred())
	_, err = transport.RoundTrip(sent) //nolint:bodyclose // it has no body
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(requests.All()).To(gomega.BeEmpty())
}
