package main

import (
	"encoding/json"
	"net/http"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// syncHook answers with the children that an object wants, and with its status.
type syncHook struct {
	tally  *tally
	once   sync.Once
	called chan struct{} // is closed by the first call
}

func newSyncHook(tally *tally) *syncHook { return &syncHook{tally: tally, called: make(chan struct{})} }

// syncRequest is the part of a request that the hook reads.
type syncRequest struct {
	Parent Example `json:"parent"`
}

// syncResponse is the answer. The status replaces that of the object, after the children have
// been written.
type syncResponse struct {
	Status   map[string]int64 `json:"status"`
	Children []map[string]any `json:"children"`
}

// ServeHTTP answers one call.
func (h *syncHook) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var request syncRequest
	if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	parent := &request.Parent
	h.tally.called(parent.Name)
	h.once.Do(func() { close(h.called) })
	response := syncResponse{Status: map[string]int64{"revision": parent.Spec.Revision}, Children: []map[string]any{}}
	if parent.Name != probeName {
		children, err := contentsOf(parent)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		response.Children = children
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(response) // the connection may be closed
}

// contentsOf returns the children of an object as an engineer writes them in JSON: with the fields
// of childrenFor and no others. The Go types of childrenFor would add empty ones, such as the
// target port 0 of a service, which Metacontroller would then write again and again.
func contentsOf(parent *Example) ([]map[string]any, error) {
	contents := make([]map[string]any, 0, childrenOf)
	for _, child := range applied(parent) {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(child)
		if err != nil {
			return nil, err
		}
		unstructured.RemoveNestedField(content, "metadata", "ownerReferences") // Metacontroller adds them
		contents = append(contents, content)
	}
	return contents, nil
}
