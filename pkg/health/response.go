package health

import (
	"encoding/json"
	"net/http"
	"slices"
)

// response is the response of an endpoint.
type response struct {
	status      int
	contentType string
	body        []byte
}

func textResponse(status int, body string) response {
	return response{status, "text/plain; charset=utf-8", []byte(body + "\n")}
}

func errorResponse(message string) response {
	return textResponse(http.StatusInternalServerError, message)
}

// probeError replaces the result of a failed probe. It does not contain the error of
// the handler, which is logged: the error can contain anything.
type probeError struct {
	Error string `json:"error"`
}

// probeResponse returns the results as a JSON object, by handler ID.
func probeResponse(results map[string]any, failures map[string]error) response {
	r := response{http.StatusOK, "application/json", nil}
	members := map[string]any{}
	for id, result := range results {
		encoded, err := json.Marshal(result)
		members[id] = json.RawMessage(encoded)
		if err != nil {
			members[id] = probeError{"the result cannot be encoded as JSON"}
			r.status = http.StatusInternalServerError
		}
	}
	for id := range failures {
		members[id] = probeError{"the probe failed; see the log for the reason"}
		r.status = http.StatusInternalServerError
	}
	body, err := json.Marshal(members)
	if err != nil { // never: all members are encoded already
		return errorResponse("the results of the probes cannot be encoded as JSON")
	}
	r.body = slices.Concat(body, []byte("\n"))
	return r
}
