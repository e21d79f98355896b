package fidelity

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"github.com/kopf-go/kopf/pkg/kopftest"
)

// answer makes a request that succeeds.
func (s *server) answer(request *http.Request) *object {
	s.t.Helper()
	s.client.Transport = overriding{s.client.Transport, request.Header.Get("Accept")}
	defer func() { s.client.Transport = s.client.Transport.(overriding).RoundTripper }()
	return s.must(request.Method, request.URL.RequestURI(), "", 200)
}

// overriding sends another header.
type overriding struct {
	http.RoundTripper
	accept string
}

// RoundTrip sends the request.
func (o overriding) RoundTrip(request *http.Request) (*http.Response, error) {
	request = request.Clone(request.Context())
	request.Header.Set("Accept", o.accept)
	return o.RoundTripper.RoundTrip(request)
}

func TestNamespaces(t *testing.T) {
	onBoth(t, func(t *testing.T, s *server) {
		s.must(http.MethodPost, "/api/v1/namespaces/none/configmaps", `{"metadata":{"name":"a"}}`, 404)
		got := s.must(http.MethodGet, "/api/v1/namespaces/"+s.namespace, "", 200)
		if got.GetLabels()["kubernetes.io/metadata.name"] != s.namespace || field(got, "status", "phase") != "Active" {
			t.Errorf("got %v", got.Object)
		}
		deleting := s.must(http.MethodDelete, "/api/v1/namespaces/"+s.namespace, "", 200)
		if field(deleting, "status", "phase") != "Terminating" {
			t.Errorf("got %v", deleting.Object)
		}
		refusal := s.must(http.MethodPost, s.core("configmaps"), `{"metadata":{"name":"a"}}`, 403)
		if causes := fmt.Sprint(field(refusal, "details", "causes")); causes !=
			"[map[field:metadata.namespace message:namespace "+s.namespace+" is being terminated reason:NamespaceTerminating]]" {
			t.Errorf("got %s", causes)
		}
	})
}

func TestBuiltInObjects(t *testing.T) {
	onBoth(t, func(t *testing.T, s *server) {
		secret := s.must(http.MethodPost, s.core("secrets"), `{"kind":"Secret","apiVersion":"v1","metadata":{"name":"a"},"stringData":{"k":"v"},"unknown":1}`, 201)
		if got := fmt.Sprintf("%v %v %v %v", field(secret, "data"), field(secret, "type"), field(secret, "stringData"), field(secret, "unknown")); got != "map[k:dg==] Opaque <nil> <nil>" {
			t.Errorf("got %s", got)
		}
		s.must(http.MethodPost, s.core("configmaps"), `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"generateName":"a-"}}`, 201)
		s.must(http.MethodPost, s.core("configmaps"), `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a"},"data":{"k":1}}`, 400)
		made := s.must(http.MethodPost, s.core("configmaps"), `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a"},"data":{"k":"v"}}`, 201)
		if made.GetGeneration() != 0 {
			t.Errorf("got %v", made.Object)
		}
		s.must(http.MethodPut, s.core("configmaps/a"), `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a"},"data":{"k":"w"}}`, 200)
		s.must(http.MethodPut, s.core("configmaps/a"), text(s, made), 409)
		s.merge(s.core("configmaps/a"), `{"metadata":{"uid":"other"}}`, 422)
	})
}

func TestEvents(t *testing.T) {
	onBoth(t, func(t *testing.T, s *server) {
		s.must(http.MethodPost, s.core("events"), `{"metadata":{"name":"a"},"involvedObject":{"kind":"Thing","name":"one","namespace":"`+s.namespace+`"},
			"reason":"Why","message":"text","type":"Normal","count":2,"source":{"component":"c"},"firstTimestamp":"2026-01-01T00:00:00Z","lastTimestamp":"2026-01-01T00:00:00Z"}`, 201)
		got := s.must(http.MethodGet, "/apis/events.k8s.io/v1/namespaces/"+s.namespace+"/events/a", "", 200)
		if summary := fmt.Sprintf("%v %v %v %v %v %v", got.GetAPIVersion(), field(got, "note"), field(got, "regarding", "name"), field(got, "deprecatedCount"), field(got, "reason"), field(got, "deprecatedSource")); summary != "events.k8s.io/v1 text one 2 Why map[component:c]" {
			t.Errorf("got %s", summary)
		}
		s.must(http.MethodPost, s.core("events"), `{"metadata":{"name":"system:node.a"},"involvedObject":{"kind":"Thing","name":"two","namespace":"`+s.namespace+`"}}`, 201)
		if found := s.must(http.MethodGet, s.core("events")+"?fieldSelector=involvedObject.name%3Done", "", 200); names(found) != "[a]" {
			t.Errorf("got %s", names(found))
		}
	})
}

// Built-in objects can be selected by some fields. An object that stops matching is deleted for a watch.
func TestFieldsOfBuiltInResources(t *testing.T) {
	onBoth(t, func(t *testing.T, s *server) {
		pod := func(name, more string) string {
			return `{"metadata":{"name":"` + name + `","labels":{"app":"web"}},"spec":{"containers":[{"name":"one","image":"one"}]` + more + `}}`
		}
		first := s.must(http.MethodPost, s.core("pods"), pod("a", `,"nodeName":"n1"`), 201)
		s.must(http.MethodPost, s.core("pods"), pod("b", `,"hostNetwork":true`), 201)
		for selector, want := range map[string]string{
			"spec.nodeName%3Dn1": "[a]", "spec.nodeName!%3Dn1": "[b]", "spec.hostNetwork%3Dfalse": "[a]", "spec.nodeName%3Dn1,metadata.name%3Db": "[]",
		} {
			if got := s.must(http.MethodGet, s.core("pods")+"?fieldSelector="+selector, "", 200); names(got) != want {
				t.Errorf("%s: got %s, want %s", selector, names(got), want)
			}
		}
		s.must(http.MethodGet, s.core("pods")+"?fieldSelector=spec.priority%3D1", "", 400)
		s.must(http.MethodGet, s.core("configmaps")+"?fieldSelector=data.a%3Db", "", 400)
		watch := s.watch(s.core("pods"), "fieldSelector=spec.nodeName%3Dn1&labelSelector=app%3Dweb&resourceVersion="+first.GetResourceVersion())
		s.merge(s.core("pods/a"), `{"metadata":{"labels":{"app":null}}}`, 200)
		s.merge(s.core("pods/a"), `{"metadata":{"labels":{"app":"web"}}}`, 200)
		s.merge(s.core("pods/a"), `{"metadata":{"labels":{"app":"db"}}}`, 200)
		watch.expect("DELETED", "a")
		watch.expect("ADDED", "a")
		watch.expect("DELETED", "a")
	})
}

func TestReviews(t *testing.T) {
	onBoth(t, func(t *testing.T, s *server) {
		got := s.must(http.MethodPost, "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
			`{"kind":"SelfSubjectAccessReview","apiVersion":"authorization.k8s.io/v1","spec":{"resourceAttributes":{"verb":"list","resource":"pods"}}}`, 201)
		if field(got, "status", "allowed") != true {
			t.Errorf("got %v", got.Object)
		}
	})
}

func TestDefinitions(t *testing.T) {
	onBoth(t, func(t *testing.T, s *server) {
		const path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/"
		definition := path + "things." + s.group
		s.create(s.things(), "a", "")
		s.merge(definition, `{"metadata":{"annotations":{"a":"b"}}}`, 200)
		got := s.must(http.MethodGet, definition, "", 200)
		if summary := fmt.Sprintf("%v %v %v %v", field(got, "spec", "names"), field(got, "status", "storedVersions"), field(got, "spec", "conversion"), got.GetGeneration()); summary !=
			"map[kind:Thing listKind:ThingList plural:things shortNames:[th"+s.group[:2]+"] singular:thing] [v1] map[strategy:None] 1" {
			t.Errorf("got %s", summary)
		}
		s.must(http.MethodDelete, definition, "", 200)
		s.eventually(func() bool {
			code, _ := s.do(http.MethodGet, definition, "", "")
			gone, _ := s.do(http.MethodGet, s.things("a"), "", "")
			return code == 404 && gone == 404
		})
		s.must(http.MethodPost, path[:len(path)-1], `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"a.`+s.group+`"},"spec":{"group":"`+s.group+`"}}`, 422)
	})
}

// The lists of resources agree, in both forms of discovery, except for what the server in memory
// does not have, and for what is newer than a server of an older release.
func TestDiscovery(t *testing.T) {
	for _, aggregated := range []bool{true, false} {
		memory, version := resourcesOf(t, kopftest.NewAPIServer(t).Config(), aggregated)
		actual, actualVersion := resourcesOf(t, cluster.Config(), aggregated)
		isOlder := actualVersion < version
		for name, description := range memory {
			if found, exists := actual[name]; found != description && (exists || !isOlder) {
				t.Errorf("%s: got\n%s, want\n%s", name, description, found)
			}
		}
		if len(memory) < 80 {
			t.Errorf("there are only %d resources", len(memory))
		}
	}
}

// resourcesOf returns the descriptions of all resources, and the minor version of a server.
func resourcesOf(t *testing.T, config *rest.Config, aggregated bool) (found map[string]string, version int) {
	t.Helper()
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	client.UseLegacyDiscovery = !aggregated
	_, lists, err := client.ServerGroupsAndResources()
	if err != nil {
		t.Fatal(err)
	}
	found = map[string]string{}
	for _, list := range lists {
		for _, one := range list.APIResources {
			one.StorageVersionHash, one.Version, one.Group = "", "", ""
			found[list.GroupVersion+" "+one.Name] = one.String()
		}
	}
	server, err := client.ServerVersion()
	if err != nil {
		t.Fatal(err)
	}
	if version, err = strconv.Atoi(strings.TrimSuffix(server.Minor, "+")); err != nil {
		t.Fatal(err)
	}
	return found, version
}
