package kube

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/kopf-go/kopf/pkg/model/selector"
	"github.com/kopf-go/kopf/pkg/settings"
)

// paged responds with a list of metadata in two pages.
func paged(w http.ResponseWriter, r *http.Request) {
	page, next := 1, "more"
	if r.URL.Query().Get("continue") == "more" {
		page, next = 2, ""
	}
	if !strings.Contains(r.Header.Get("Accept"), "as=PartialObjectMetadataList") || r.URL.Query().Get("resourceVersion") != "" {
		w.WriteHeader(http.StatusNotAcceptable)
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = fmt.Fprintf(w, `{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"9","continue":%q},
		"items":[{"metadata":{"namespace":"ns","name":"n%d","uid":"u%d","resourceVersion":"%d"}}]}`, next, page, page, page)
}

func TestListVersionsReadsAllPages(t *testing.T) {
	versions, err := versionsOf(t, paged)
	if err != nil {
		t.Fatal(err)
	}
	for i, name := range []string{"n1", "n2"} {
		want := Version{types.UID(fmt.Sprintf("u%d", i+1)), fmt.Sprint(i + 1)}
		if got := versions[types.NamespacedName{Namespace: "ns", Name: name}]; got != want {
			t.Errorf("%s: got %v, want %v", name, got, want)
		}
	}
	if len(versions) != 2 {
		t.Errorf("got %d versions", len(versions))
	}
}

// Lists and watches are restricted to some objects, in addition to what the caller asks for. Others exist, too.
func TestSelectionOfObjects(t *testing.T) {
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		asked = append(asked, q.Get("labelSelector")+" "+q.Get("fieldSelector"))
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"9"},"items":[]}`)
	}))
	t.Cleanup(server.Close)
	s := settings.Default()
	s.Watching.LabelSelectors = map[string]string{"things": "app=web", "others": "app=db"}
	s.Watching.FieldSelectors = map[string]string{"g/*": "spec.a=b"}
	c, err := New(&rest.Config{Host: server.URL}, server.Client(), selector.Resource{Group: "g", Version: "v1", Plural: "things", Kind: "Thing"}, s)
	if err != nil {
		t.Fatal(err)
	}
	source := c.Source("", nil, s.Watching, nil).ListWatch()
	_, listErr := source.ListWithContext(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=a"})
	_, watchErr := source.WatchWithContext(t.Context(), metav1.ListOptions{})
	_, versionsErr := c.ListVersions(t.Context(), "ns", nil)
	_, _, findErr := c.Find(t.Context(), types.NamespacedName{Namespace: "ns", Name: "a"})
	want := []string{"app=web metadata.name=a,spec.a=b", "app=web spec.a=b", "app=web spec.a=b", " metadata.name=a"}
	if err := errors.Join(listErr, versionsErr, findErr); err != nil || !slices.Equal(asked, want) {
		t.Errorf("got %q, want %q: %v, %v", asked, want, err, watchErr)
	}
	if c.Selection().IsEmpty() || !(*Client)(nil).Selection().IsEmpty() {
		t.Errorf("got %+v", c.Selection())
	}
}

func TestInvalidListIsAnError(t *testing.T) {
	for _, answer := range []string{`{`, `{"metadata":{}}`, `{"metadata":{},"items":[`, `{"metadata":{},"items":{}}`} {
		_, err := versionsOf(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, answer)
		})
		if err == nil || !strings.Contains(err.Error(), "cannot list things.v1.g") {
			t.Errorf("%s: %v", answer, err)
		}
	}
}

func versionsOf(t *testing.T, answer http.HandlerFunc) (map[types.NamespacedName]Version, error) {
	t.Helper()
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	client, err := New(&rest.Config{Host: server.URL}, server.Client(), selector.Resource{Group: "g", Version: "v1", Plural: "things", Kind: "Thing"}, settings.Default())
	if err != nil {
		t.Fatal(err)
	}
	return client.ListVersions(t.Context(), "ns", nil)
}
