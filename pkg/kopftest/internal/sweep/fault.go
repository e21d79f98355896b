package sweep

import (
	"errors"
	"io"
	"net/http"
	"strings"
)

// Fault is a fault of one write.
type Fault string

// The faults.
const (
	CrashBefore Fault = "crash before"
	CrashAfter  Fault = "crash after"
	LostAnswer  Fault = "lost answer of"
	Conflict    Fault = "conflict at"
	ErrorAfter  Fault = "error after"
	Refusal     Fault = "refusal of"
)

// All returns all faults.
func All() []Fault {
	return []Fault{CrashBefore, CrashAfter, LostAnswer, Conflict, ErrorAfter, Refusal}
}

// Describe describes the fault, followed by the write.
func (f Fault) Describe() string {
	switch f {
	case CrashBefore:
		return "The operator crashed before it sent"
	case CrashAfter:
		return "The operator crashed after it sent, without the answer to,"
	case LostAnswer:
		return "The connection broke after the API server committed, and before it answered,"
	case Conflict:
		return "Another client wrote to the object right before"
	case Refusal:
		return "The API server refused, with code 500 because a webhook did not answer,"
	default:
		return "The API server committed, but answered with code 500 to,"
	}
}

// ErrLost is the error of a request whose answer is lost.
var ErrLost = errors.New("the connection is broken: connection reset by peer")

// World is the target of faults.
type World struct {
	Send  http.RoundTripper
	Touch func(path string) // gives an object a new version
	Kill  func()            // kills the operator
}

// Strike sends a write under the fault. An operator that is dead gets no answer.
func (f Fault) Strike(world World, request *http.Request) (*http.Response, error) {
	switch f {
	case CrashBefore:
		world.Kill()
		return nil, ErrLost
	case Refusal:
		return failure(request, "Internal error occurred: failed calling webhook \\\"kopftest.dev\\\": connection refused"), nil
	case Conflict:
		world.Touch(request.URL.Path)
		return world.Send.RoundTrip(request)
	}
	response, err := world.Send.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	_ = response.Body.Close() // it is in memory
	switch f {
	case CrashAfter:
		world.Kill()
	case ErrorAfter:
		return failure(request, "etcdserver: request timed out"), nil
	}
	return nil, ErrLost
}

// failure is the answer of a server that has lost its storage, or a webhook, for a moment. The
// message is that of a text in JSON.
func failure(request *http.Request, message string) *http.Response {
	status := `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"InternalError","message":"` + message + `","code":500}`
	return &http.Response{
		StatusCode: http.StatusInternalServerError, Status: "500 Internal Server Error", Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/json"}}, Request: request,
		ContentLength: int64(len(status)), Body: io.NopCloser(strings.NewReader(status)),
	}
}
