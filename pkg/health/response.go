package health

import (
	"encoding/json"
	"net/http"
)

// response is what an endpoint says.
type response struct {
	status      int
	contentType string // of the body
	body        []byte
}

func textResponse(status int, body string) response {
	return response{status, "text/plain; charset=utf-8", []byte(body + "\n")}
}

func errorResponse(message string) response {
	return textResponse(http.StatusInternalServerError, message)
}

// probeError stands for the result of a probe that has none. Its error can have
// anything in it, and is for the log.
type probeError struct {
	Error string `json:"error"`
}

// probeResponse shows the results by the ids of the probes.
func probeResponse(results map[string]any, failures map[string]error) response {
	shown := response{http.StatusOK, "application/json", nil}
	members := map[string]any{}
	for id, result := range results {
		encoded, err := json.Marshal(result)
		if members[id] = json.RawMessage(encoded); err != nil {
			members[id] = probeError{"the result is no JSON"}
			shown.status = http.StatusInternalServerError
		}
	}
	for id := range failures {
		members[id] = probeError{"the probe has failed; the log tells why"}
		shown.status = http.StatusInternalServerError
	}
	body, err := json.Marshal(members)
	if err != nil { // never: all members are encoded already
		return errorResponse("the results of the probes are no JSON")
	}
	body = append(body, '\n')
	shown.body = body
	return shown
}

// write sends the answer. Who has gone does not need it.
func (r response) write(into http.ResponseWriter) {
	header := into.Header()
	header.Set("Content-Type", r.contentType)
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Cache-Control", "no-store")
	if r.status == http.StatusMethodNotAllowed {
		header.Set("Allow", "GET, HEAD")
	}
	into.WriteHeader(r.status)
	_, _ = into.Write(r.body)
}
