package fidelity

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/json"

	"github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/kopf-go/kopf/pkg/kopftest"
)

// object is an answer: an object, a list, or a status.
type object = unstructured.Unstructured

// server makes plain requests, because clients hide what is compared here.
type server struct {
	t         *testing.T
	url       string
	client    *http.Client
	namespace string
	group     string // of the custom resources of this test
	memory    *kopftest.APIServer
}

// number makes names unique.
var number int

// newServer prepares a namespace and the custom resources of a test.
func newServer(t *testing.T, config *rest.Config) *server {
	t.Helper()
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	number++
	s := &server{
		t: t, url: strings.TrimSuffix(config.Host, "/"), client: client,
		namespace: fmt.Sprintf("fidelity-%d", number), group: fmt.Sprintf("f%d.kopf.dev", number),
	}
	s.must(http.MethodPost, "/api/v1/namespaces", `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"`+s.namespace+`"}}`, 201)
	s.define("things", `{"status":{}}`, "v1", "v2")
	s.define("plains", `{}`, "v1")
	return s
}

const schemaOfThings = `{"type":"object","properties":{
	"spec":{"type":"object","x-kubernetes-validations":[{"rule":"!has(self.max) || !has(self.size) || self.size <= self.max","message":"too big"}],"properties":{
		"size":{"type":"integer"},"max":{"type":"integer"},"color":{"type":"string","default":"red"},"note":{"type":"string"},"maybe":{"type":"string","nullable":true},
		"tags":{"type":"array","x-kubernetes-list-type":"set","items":{"type":"string"}},
		"ports":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["name"],"items":{"type":"object","required":["name"],"properties":{"name":{"type":"string"},"port":{"type":"integer"}}}},
		"open":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}},
	"status":{"type":"object","properties":{"seen":{"type":"integer"}}}}}`

// define installs a custom resource, and waits until it is served.
func (s *server) define(plural, subresources string, versions ...string) {
	s.t.Helper()
	s.defineWith(schemaOfThings, plural, subresources, versions...)
}

func (s *server) defineWith(schema, plural, subresources string, versions ...string) {
	s.t.Helper()
	var listed []string
	selectable := "[]"
	if strings.Contains(schema, `"color":`) {
		selectable = `[{"jsonPath":".spec.color"}]`
	}
	for i, version := range versions {
		listed = append(listed, fmt.Sprintf(`{"name":%q,"served":true,"storage":%t,"subresources":%s,"selectableFields":%s,"schema":{"openAPIV3Schema":%s}}`, version, i == 0, subresources, selectable, schema))
	}
	kind := strings.ToUpper(plural[:1]) + plural[1:len(plural)-1]
	s.must(http.MethodPost, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", fmt.Sprintf(
		`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"%s.%s"},"spec":{"group":%[2]q,"scope":"Namespaced","names":{"plural":%[1]q,"kind":%[3]q,"shortNames":[%[4]q]},"versions":[%[5]s]}}`,
		plural, s.group, kind, plural[:2]+s.group[:2], strings.Join(listed, ",")), 201)
	for _, version := range versions {
		s.eventually(func() bool {
			code, _ := s.do(http.MethodGet, s.path(plural, version), "", "")
			return code == 200
		})
	}
}

// path returns the path of a custom resource of the test.
func (s *server) path(plural, version string, rest ...string) string {
	return strings.Join(append([]string{"/apis", s.group, version, "namespaces", s.namespace, plural}, rest...), "/")
}

// things returns the path of an object with a subresource for its status.
func (s *server) things(rest ...string) string { return s.path("things", "v1", rest...) }

// plains returns the path of an object without subresources.
func (s *server) plains(rest ...string) string { return s.path("plains", "v1", rest...) }

// core returns a path of the core group.
func (s *server) core(rest ...string) string {
	return strings.Join(append([]string{"/api/v1/namespaces", s.namespace}, rest...), "/")
}

const (
	jsonType      = "application/json"
	mergeType     = "application/merge-patch+json"
	jsonPatchType = "application/json-patch+json"
	strategicType = "application/strategic-merge-patch+json"
	applyType     = "application/apply-patch+yaml"
)

// do makes a request.
func (s *server) do(method, path, contentType, body string) (int, *object) {
	s.t.Helper()
	response := s.send(s.t.Context(), method, path, contentType, body)
	defer func() { _ = response.Body.Close() }()
	data, err := io.ReadAll(response.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	answer := &object{}
	_ = json.Unmarshal(data, &answer.Object) // some answers are text
	return response.StatusCode, answer
}

func (s *server) send(ctx context.Context, method, path, contentType, body string) *http.Response {
	s.t.Helper()
	request, err := http.NewRequestWithContext(ctx, method, s.url+path, bytes.NewBufferString(body))
	if err != nil {
		s.t.Fatal(err)
	}
	if contentType != "" {
		request.Header.Set("Content-Type", contentType)
	}
	request.Header.Set("User-Agent", "fidelity/1")
	response, err := s.client.Do(request)
	if err != nil {
		s.t.Fatal(err)
	}
	return response
}

// must makes a request that has a certain code.
func (s *server) must(method, path, body string, code int) *object {
	s.t.Helper()
	return s.mustAs(method, path, jsonType, body, code)
}

// mustAs is must with another type of content.
func (s *server) mustAs(method, path, contentType, body string, code int) *object {
	s.t.Helper()
	got, answer := s.do(method, path, contentType, body)
	if got != code {
		s.t.Fatalf("%s %s: got %d, want %d: %v", method, path, got, code, answer.Object)
	}
	return answer
}

// create creates a thing or a plain.
func (s *server) create(path, name, fields string) *object {
	s.t.Helper()
	kind := "Thing"
	if strings.Contains(path, "/plains") {
		kind = "Plain"
	}
	return s.must(http.MethodPost, path, s.body(kind, name, fields), 201)
}

// body returns an object. The fields begin with a comma, or are empty.
func (s *server) body(kind, name, fields string) string {
	return fmt.Sprintf(`{"apiVersion":"%s/v1","kind":%q,"metadata":{"name":%q}%s}`, s.group, kind, name, fields)
}

// merge applies a merge patch.
func (s *server) merge(path, patch string, code int) *object {
	s.t.Helper()
	return s.mustAs(http.MethodPatch, path, mergeType, patch, code)
}

// eventually waits for a condition.
func (s *server) eventually(condition func() bool) {
	s.t.Helper()
	gomega.NewWithT(s.t).Eventually(condition).Should(gomega.BeTrue())
}

// stream is a watch.
type stream struct {
	t      *testing.T
	code   int
	lines  *bufio.Reader
	cancel context.CancelFunc
}

// watch starts a watch.
func (s *server) watch(path, query string) *stream {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), 30*time.Second)
	s.t.Cleanup(cancel)
	response := s.send(ctx, http.MethodGet, path+"?watch=true&"+query, "", "")
	s.t.Cleanup(func() { _ = response.Body.Close() })
	return &stream{t: s.t, code: response.StatusCode, lines: bufio.NewReader(response.Body), cancel: cancel}
}

// next returns the next event, or io.EOF at the end of the watch.
func (w *stream) next() (kind string, about *object, err error) {
	w.t.Helper()
	line, err := w.lines.ReadBytes('\n')
	if err != nil {
		return "", nil, err
	}
	var event struct {
		Type   string         `json:"type"`
		Object map[string]any `json:"object"`
	}
	if err := json.Unmarshal(line, &event); err != nil {
		w.t.Fatalf("%v: %s", err, line)
	}
	return event.Type, &object{Object: event.Object}, nil
}

// expect waits for the next event, which must be about an object of a name.
func (w *stream) expect(kind, name string) *object {
	w.t.Helper()
	got, about, err := w.next()
	if err != nil || got != kind || about.GetName() != name {
		w.t.Fatalf("got %s of %v (%v), want %s of %q", got, about, err, kind, name)
	}
	return about
}
