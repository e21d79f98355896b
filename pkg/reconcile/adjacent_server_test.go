package reconcile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kopf-go/kopf/pkg/model/patch"
)

// oneObject is an API server with one object, in memory. It follows the rules of the wire that
// the write protocol depends on: each write has a new version, and a patch that is bound to
// another version is a conflict.
type oneObject struct {
	object  m
	version int
	// before and after are called around the next write, after the skipped ones, and removed.
	before, after func() error
	skip          int
	// hasStatus means that the status is a subresource.
	hasStatus bool
	// committed is called after each write.
	committed func()
	// down fails all requests. unserved means that the resource is not served anymore. refuses means that no write is valid.
	down, unserved, refuses bool
	requests                int
}

// notFound is a response about an object, or about the resource.
func notFound(name string) metav1.Status {
	s := metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Reason: metav1.StatusReasonNotFound, Code: http.StatusNotFound}
	s.Message = "not found"
	if name != "" {
		s.Details = &metav1.StatusDetails{Name: name, Kind: kex.Plural}
	}
	return s
}

// list lists the object, if it exists.
func (s *oneObject) list() *http.Response {
	items := []any{}
	if s.object != nil {
		items = append(items, s.object)
	}
	version := strconv.Itoa(s.version)
	return answer(http.StatusOK, m{"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "metadata": m{"resourceVersion": version}, "items": items})
}

// remove deletes the object.
func (s *oneObject) remove() { s.version, s.object = s.version+1, nil }

var errConnection = errors.New("the connection is lost")

// change applies a change of a user.
func (s *oneObject) change(merge m) {
	changed := patch.ApplyMerge(s.object, merge)
	if fmt.Sprint(changed) != fmt.Sprint(s.object) {
		s.version++
		s.object = patch.ApplyMerge(changed, m{"metadata": m{"resourceVersion": strconv.Itoa(s.version)}})
	}
}

// RoundTrip answers a request. It is not safe for concurrent use.
func (s *oneObject) RoundTrip(r *http.Request) (*http.Response, error) {
	if s.requests++; s.down {
		return nil, errConnection
	}
	path := strings.Split(r.URL.Path, "/")
	name := path[len(path)-1]
	ofStatus := s.hasStatus && name == "status"
	switch {
	case s.unserved:
		return answer(http.StatusNotFound, notFound("")), nil
	case r.Method == http.MethodGet && name == kex.Plural:
		return s.list(), nil
	case s.object == nil:
		return answer(http.StatusNotFound, notFound(name)), nil
	case r.Method == http.MethodGet:
		return answer(http.StatusOK, s.object), nil
	case r.Method == http.MethodPatch:
		return s.patch(r, ofStatus)
	default:
		return nil, fmt.Errorf("unexpected request: %s %s", r.Method, r.URL)
	}
}

func (s *oneObject) patch(r *http.Request, ofStatus bool) (*http.Response, error) {
	text, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	var merge m
	if err := json.Unmarshal(text, &merge); err != nil {
		return nil, err
	}
	before, after := s.nextFault()
	if before != nil {
		if err := before(); err != nil {
			return nil, err
		}
	}
	if s.object == nil {
		return answer(http.StatusNotFound, notFound("a")), nil
	}
	if s.refuses {
		return answer(http.StatusUnprocessableEntity, metav1.Status{
			TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
			Status:   metav1.StatusFailure, Reason: metav1.StatusReasonInvalid, Code: http.StatusUnprocessableEntity,
		}), nil
	}
	version, _ := merge["metadata"].(m)["resourceVersion"].(string)
	if version != strconv.Itoa(s.version) {
		return answer(http.StatusConflict, metav1.Status{
			TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
			Status:   metav1.StatusFailure, Reason: metav1.StatusReasonConflict, Code: http.StatusConflict,
		}), nil
	}
	delete(merge["metadata"].(m), "resourceVersion")
	s.change(s.served(merge, ofStatus))
	s.committed()
	written := s.object
	metadata := written["metadata"].(m)
	if finalizers, _ := metadata["finalizers"].([]any); len(finalizers) == 0 && metadata["deletionTimestamp"] != nil {
		s.remove()
	}
	if after != nil {
		if err := after(); err != nil {
			return nil, err
		}
	}
	return answer(http.StatusOK, written), nil
}

// nextFault returns what is to happen around this write.
func (s *oneObject) nextFault() (before, after func() error) {
	if s.skip > 0 {
		s.skip--
		return nil, nil
	}
	before, after = s.before, s.after
	s.before, s.after = nil, nil
	return before, after
}

// served returns the part of a patch that a write to the object, or to its status, applies.
func (s *oneObject) served(merge m, ofStatus bool) m {
	if !s.hasStatus {
		return merge
	}
	main, status := patch.SplitStatus(merge)
	if ofStatus {
		return status
	}
	return main
}

func answer(code int, content any) *http.Response {
	text, _ := json.Marshal(content)
	return &http.Response{
		StatusCode: code, Header: http.Header{"Content-Type": []string{"application/json"}},
		Body: io.NopCloser(bytes.NewReader(text)),
	}
}

// annotations returns those of the object.
func (s *oneObject) annotations() m {
	found, _ := s.object["metadata"].(m)["annotations"].(m)
	return found
}

// essence returns the part of the object that its users change, as text.
func (s *oneObject) essence() m {
	labels, _ := s.object["metadata"].(m)["labels"].(m)
	return m{"spec": s.object["spec"], "labels": labels}
}

// records returns the annotations with the records of handlers.
func (s *oneObject) records() map[string]m {
	found := map[string]m{}
	for key, text := range s.annotations() {
		name := strings.TrimPrefix(key, kopfPrefix)
		var r m
		if strings.HasPrefix(name, "last-handled-configuration") || json.Unmarshal([]byte(text.(string)), &r) != nil {
			continue
		}
		found[name] = maps.Clone(r)
	}
	return found
}

// stored describes the annotations of operators.
func (s *oneObject) stored() string {
	var text []string
	for name, r := range s.records() {
		text = append(text, fmt.Sprintf("%s(%v success=%v failure=%v retries=%v cycle=%v)", name, r["purpose"], r["success"], r["failure"], r["retries"], r["cycle"]))
	}
	for key, value := range s.annotations() {
		if name, isBase := strings.CutPrefix(key, kopfPrefix+"last-handled-configuration"); isBase {
			text = append(text, "base"+name+"="+strings.TrimSpace(value.(string)))
		}
	}
	slices.Sort(text)
	return strings.Join(text, " ")
}

const kopfPrefix = "kopf.zalando.org/"
