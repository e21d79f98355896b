package faults

import (
	"bytes"
	"io"
	"net/http"
	"time"
)

// An API server can lag behind others: a list that may have any version is then from before the
// last writes, and watches show them late. The operator must ask for a consistent list. (Other
// operators use watches that begin with all objects, which are always consistent.)

// lag is how long the next operator sees nothing new.
const lag = 300 * time.Millisecond

// keepList keeps the list of all objects as it is now.
func (w *stormWrite) keepList() {
	asked := w.request.Clone(w.request.Context())
	asked.Method, asked.Body, asked.ContentLength = http.MethodGet, nil, 0
	asked.URL.Path = "/apis/kopf.dev/v1/namespaces/" + w.storm.namespace + "/kopfexamples"
	asked.URL.RawQuery = ""
	asked.Header.Del("Content-Type")
	answer, err := w.next.RoundTrip(asked)
	if err != nil {
		return
	}
	defer func() { _ = answer.Body.Close() }()
	if content, err := io.ReadAll(answer.Body); err == nil {
		w.storm.outdated.Store(&content)
	}
}

// list sends a request for the list of all objects.
func (o *stormOperator) list(sent *http.Request, next http.RoundTripper) (*http.Response, error) {
	o.listed.Add(1)
	content := o.storm.outdated.Load()
	if sent.URL.Query().Get("resourceVersion") != "0" || content == nil {
		return next.RoundTrip(sent)
	}
	o.storm.note("%s gets an outdated list", o.name)
	answer := failure(sent, http.StatusOK, "")
	answer.Body = io.NopCloser(bytes.NewReader(*content))
	return answer, nil
}

// refuses reports whether the API server does not know watches that begin with all objects.
func (o *stormOperator) refuses(sent *http.Request) bool {
	return o.storm.lists && sent.URL.Query().Get("sendInitialEvents") != ""
}
