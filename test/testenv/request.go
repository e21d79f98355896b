package testenv

import (
	"fmt"
	"io"
	"net/http"
	"strings"
)

// Methods of requests that HTTP calls GET, and Kubernetes does not.
const (
	MethodList  = "LIST"
	MethodWatch = "WATCH"
)

// Request is what a client asked of the API server.
type Request struct {
	// Method is that of HTTP, but LIST and WATCH for a GET of many objects.
	Method string
	// Group, Resource, Subresource, Namespace and Name say of what. All are empty
	// for discovery and other requests that concern no resource.
	Group, Resource, Subresource, Namespace, Name string
	// URI is the path with its query.
	URI string
	// Body is what was sent; nil where nothing was.
	Body []byte
	// Status is the code of the answer; 0 if there was none.
	Status int
}

// String is the request on one line, for the message of a failed test.
func (r Request) String() string {
	answer := fmt.Sprint(r.Status)
	if r.Status == 0 {
		answer = "no answer"
	}
	return strings.TrimSpace(fmt.Sprintf("%s %s %s %s", r.Method, r.URI, answer, r.Body))
}

// newRequest describes a request before it is sent.
func newRequest(sent *http.Request) Request {
	request := Request{Method: sent.Method, URI: sent.URL.RequestURI(), Body: body(sent)}
	request.locate(sent.URL.Path)
	if sent.Method == http.MethodGet && request.Resource != "" {
		switch {
		case sent.URL.Query().Get("watch") == "true":
			request.Method = MethodWatch
		case request.Name == "":
			request.Method = MethodList
		}
	}
	return request
}

// body reads a copy of what is sent; the clients of Kubernetes always offer one.
func body(sent *http.Request) []byte {
	if sent.GetBody == nil {
		return nil
	}
	reader, err := sent.GetBody()
	if err != nil {
		return nil
	}
	defer func() { _ = reader.Close() }()
	content, _ := io.ReadAll(reader)
	return content
}

// locate takes the path apart: /api/v1/… and /apis/<group>/<version>/…, then
// namespaces/<namespace>/ for what is in one, then resource, name, subresource.
func (r *Request) locate(path string) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	switch {
	case parts[0] == "api" && len(parts) > 2:
		parts = parts[2:]
	case parts[0] == "apis" && len(parts) > 3:
		r.Group, parts = parts[1], parts[3:]
	default:
		return
	}
	if parts[0] == "namespaces" && len(parts) > 2 && parts[2] != "status" && parts[2] != "finalize" {
		r.Namespace, parts = parts[1], parts[2:]
	}
	fields := [3]string{}
	copy(fields[:], parts)
	r.Resource, r.Name, r.Subresource = fields[0], fields[1], fields[2]
}
