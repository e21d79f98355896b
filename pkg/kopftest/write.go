package kopftest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Write is a request of the operator, or of its handlers, that changes objects.
type Write struct {
	At time.Time
	// Method is POST, PUT, PATCH, or DELETE.
	Method string
	// Path is the path of the request, without the part for the version of the API:
	// "namespaces/default/pods/one/status".
	Path string
	// Object is the written object, with its resource: "pods default/one". A new object
	// whose name is generated has only the beginning of its name.
	Object string
	// Number is 1 for the first write to the object, even if it was in a former run of the
	// operator.
	Number int
	Body   string
	Code   int // of the response
}

// String describes the write in a line.
func (w Write) String() string {
	return fmt.Sprintf("%s %s (write %d of %s): %d", w.Method, w.Path, w.Number, w.Object, w.Code)
}

// newWrite returns what is recorded of a request, and the request to send. It returns nil
// for reads, and for what does not change objects: reviews, events, leases, and dry runs.
func newWrite(request *http.Request) (*Write, *http.Request) {
	path := objectPath(request.URL.Path)
	namespace, parts := splitNamespace(path)
	isHidden := parts[0] == "events" || parts[0] == "leases" || strings.HasSuffix(parts[0], "reviews")
	if request.Method == http.MethodGet || isHidden || request.URL.Query().Get("dryRun") != "" {
		return nil, request
	}
	var body []byte
	if request.Body != nil {
		body, _ = io.ReadAll(request.Body) // clients send from memory
		request.Body = io.NopCloser(bytes.NewReader(body))
	}
	var name string
	if len(parts) > 1 {
		name = parts[1]
	} else { // a new object
		var created metav1.PartialObjectMetadata
		_ = json.Unmarshal(body, &created) // the server refuses what is unreadable
		name = cmp.Or(created.Name, created.GenerateName)
	}
	if namespace != "" {
		name = namespace + "/" + name
	}
	return &Write{At: time.Now(), Method: request.Method, Path: path, Object: parts[0] + " " + name, Body: string(body)}, request
}

// splitNamespace divides a path into the namespace and the rest, which begins with the
// resource.
func splitNamespace(path string) (namespace string, rest []string) {
	parts := strings.Split(path, "/")
	if len(parts) > 2 && parts[0] == "namespaces" {
		return parts[1], parts[2:]
	}
	return "", parts
}

// objectPath returns a path without the group and the version.
func objectPath(path string) string {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	skip := 2 // api, v1
	if parts[0] == "apis" {
		skip = 3
	}
	return strings.Join(parts[min(skip, len(parts)):], "/")
}
