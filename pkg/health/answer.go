package health

import (
	"encoding/json"
	"net/http"
)

// answer is what an endpoint says.
type answer struct {
	status int
	kind   string // of the body
	body   []byte
}

func text(status int, body string) answer {
	return answer{status, "text/plain; charset=utf-8", []byte(body + "\n")}
}

func failure(message string) answer { return text(http.StatusInternalServerError, message) }

// failed stands for the result of a probe that has none. Its error can have
// anything in it, and is for the log.
type failed struct {
	Error string `json:"error"`
}

// reported shows the results by the ids of the probes.
func reported(results map[string]any, failures map[string]error) answer {
	shown := answer{http.StatusOK, "application/json", nil}
	members := map[string]any{}
	for id, result := range results {
		encoded, err := json.Marshal(result)
		if members[id] = json.RawMessage(encoded); err != nil {
			members[id] = failed{"the result is no JSON"}
			shown.status = http.StatusInternalServerError
		}
	}
	for id := range failures {
		members[id] = failed{"the probe has failed; the log tells why"}
		shown.status = http.StatusInternalServerError
	}
	body, err := json.Marshal(members)
	if err != nil { // never: all members are encoded already
		return failure("the results of the probes are no JSON")
	}
	body = append(body, '\n')
	shown.body = body
	return shown
}

// write sends the answer. Who has gone does not need it.
func (a answer) write(into http.ResponseWriter) {
	header := into.Header()
	header.Set("Content-Type", a.kind)
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Cache-Control", "no-store")
	if a.status == http.StatusMethodNotAllowed {
		header.Set("Allow", "GET, HEAD")
	}
	into.WriteHeader(a.status)
	_, _ = into.Write(a.body)
}
