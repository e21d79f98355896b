package write

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/patch"
)

// server is an API server with one object, in memory.
type server struct {
	t                 *testing.T
	object            m // nil: it does not exist
	version           int
	statusSubresource bool
	prunesStatus      bool // the schema has no status

	requests []request
	// faults are what happens to the next patches, one each.
	faults []fault
	// readErr is the answer to all reads.
	readErr error
	// managers answers the questions for other writers.
	managers []metav1.ManagedFieldsEntry
	// rejects judges an object that is about to be stored; nil: everything is valid.
	rejects func(object m) error
	// late commits a write that the client has given up.
	late func()
}

// fault is a failure of one patch.
type fault struct {
	before func() // another client is faster
	err    error  // the answer; nothing is committed
	lost   error  // the answer, though the write is committed
	late   error  // the answer; the write is committed when server.late is called
}

// request is one that has reached the server.
type request struct {
	name    string // such as "PATCH status"
	patch   m
	version string // of the object when the request arrived
}

func (s *server) Get(context.Context, types.NamespacedName) (*object.Snapshot, error) {
	s.requests = append(s.requests, request{name: "GET"})
	switch {
	case s.readErr != nil:
		return nil, s.readErr
	case s.object == nil:
		return nil, answer(http.StatusNotFound)
	}
	return s.snapshot(s.object), nil
}

func (s *server) Patch(_ context.Context, _ types.NamespacedName, subresource string, merge []byte) (*object.Snapshot, error) {
	var f fault
	if len(s.faults) > 0 {
		f, s.faults = s.faults[0], s.faults[1:]
	}
	if f.before != nil {
		f.before()
	}
	change := s.note("PATCH", subresource, merge)
	if f.late != nil {
		s.late = func() { _, _ = s.commit(subresource, change) }
	}
	if err := errors.Join(f.err, f.late); err != nil {
		return nil, err
	}
	after, err := s.commit(subresource, change)
	if err == nil {
		err = f.lost
	}
	return after, err
}

func (s *server) DryRun(_ context.Context, _ types.NamespacedName, subresource string, merge []byte) error {
	_, err := s.apply(subresource, s.note("DRYRUN", subresource, merge))
	return err
}

func (s *server) Find(context.Context, types.NamespacedName) (types.UID, string, error) {
	s.requests = append(s.requests, request{name: "LIST"})
	if s.readErr != nil {
		return "", "", s.readErr
	}
	if s.object == nil {
		return "", strconv.Itoa(s.version), nil
	}
	return object.NewBody(s.object).UID(), strconv.Itoa(s.version), nil
}

func (s *server) ManagedFields(context.Context, types.NamespacedName) ([]metav1.ManagedFieldsEntry, error) {
	s.requests = append(s.requests, request{name: "GET managedFields"})
	return s.managers, nil
}

// note remembers a request, and returns its patch.
func (s *server) note(verb, subresource string, merge []byte) m {
	s.t.Helper()
	var change m
	if err := json.Unmarshal(merge, &change); err != nil {
		s.t.Fatalf("the patch is not JSON: %v", err)
	}
	if subresource != "" {
		verb += " " + subresource
	}
	s.requests = append(s.requests, request{verb, change, strconv.Itoa(s.version)})
	return change
}

// apply returns the object as it would be after a patch.
func (s *server) apply(subresource string, change m) (m, error) {
	if s.object == nil {
		return nil, answer(http.StatusNotFound)
	}
	if subresource == "status" && !s.statusSubresource {
		return nil, answer(http.StatusNotFound)
	}
	expected, bound := object.Lookup(change, object.Path{"metadata", "resourceVersion"})
	if bound && expected != strconv.Itoa(s.version) {
		return nil, answer(http.StatusConflict)
	}
	wanted := patch.ApplyMerge(s.object, change)
	switch {
	case s.prunesStatus:
		wanted = patch.ApplyMerge(wanted, m{"status": nil})
	case subresource == "status":
		wanted = patch.ApplyMerge(s.object, m{"status": change["status"]})
	case s.statusSubresource:
		wanted = patch.ApplyMerge(wanted, m{"status": nil})
		if status, has := s.object["status"]; has {
			wanted["status"] = status
		}
	}
	wanted = patch.ApplyMerge(wanted, m{"metadata": m{"resourceVersion": strconv.Itoa(s.version)}})
	if s.rejects != nil {
		return wanted, s.rejects(wanted)
	}
	return wanted, nil
}

// commit stores an object. One that loses its last finalizer is deleted: the answer
// has the version from before then, as that of a real server.
func (s *server) commit(subresource string, change m) (*object.Snapshot, error) {
	wanted, err := s.apply(subresource, change)
	if err != nil {
		return nil, err
	}
	body := object.NewBody(wanted)
	switch {
	case body.Deleting() && len(body.Finalizers()) == 0:
		s.object = nil
		s.version++
	case !object.Equal(wanted, s.object):
		s.store(wanted)
		wanted = s.object
	}
	return s.snapshot(wanted), nil
}

func (s *server) store(wanted m) {
	s.version++
	s.object = patch.ApplyMerge(wanted, m{"metadata": m{"resourceVersion": strconv.Itoa(s.version)}})
}

// change is a write of another client.
func (s *server) change(merge m) { s.store(patch.ApplyMerge(s.object, merge)) }

// replace deletes the object and creates another one of its name.
func (s *server) replace() {
	s.store(m{"metadata": m{"name": "one", "namespace": "ns", "uid": "u-2"}, "spec": m{"new": true}})
}

// snapshot returns an object as the server answers with it.
func (s *server) snapshot(of m) *object.Snapshot {
	s.t.Helper()
	text, err := json.Marshal(of)
	if err != nil {
		s.t.Fatal(err)
	}
	snapshot, err := object.ParseSnapshot(text)
	if err != nil {
		s.t.Fatal(err)
	}
	return snapshot
}

// sent returns the names of the requests since the last call.
func (s *server) sent() (names []string) {
	for _, r := range s.requests {
		names = append(names, r.name)
	}
	s.requests = nil
	return names
}

// field returns a field of the stored object; nil if it has none.
func (s *server) field(path ...string) any {
	value, _ := object.Lookup(s.object, path)
	return value
}

// answer returns an error as the API server answers with it; 403 is that of a policy.
func answer(code int) error {
	err := apierrors.NewGenericServerResponse(code, http.MethodPatch, schema.GroupResource{Resource: "kex"}, "one", "", 0, false)
	if code == http.StatusForbidden {
		err.ErrStatus.Details.Causes = []metav1.StatusCause{{Message: "no"}}
	}
	return err
}

// rejecting returns a rule against objects that have the field.
func rejecting(code int, path ...string) func(m) error {
	return func(of m) error {
		if _, has := object.Lookup(of, path); has {
			return answer(code)
		}
		return nil
	}
}
