package revision

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/kopf-go/kopf/pkg/model/object"
)

// Name is the name of the annotation, without its prefix.
const Name = "handled-revisions"

// Marks are the revisions under which the handlers of an object have ended last. The zero value
// has none. Kopf neither reads nor removes them.
type Marks struct {
	// Done contains the revisions of the handlers that have succeeded, Failed those of the
	// handlers that have failed permanently. A handler is in one of them.
	Done   map[string]string `json:"done,omitempty"`
	Failed map[string]string `json:"failed,omitempty"`
}

// Read returns the marks in the annotation of an object. A value that cannot be read has none:
// the handlers are called again, as if they had no revision before.
func Read(body *object.Body, annotation string) Marks {
	var marks Marks
	if text, present := body.Annotation(annotation); present {
		if err := json.Unmarshal([]byte(text), &marks); err != nil {
			return Marks{}
		}
	}
	return marks
}

// String returns the value of the annotation.
func (m Marks) String() string {
	text, _ := json.Marshal(m) // texts never fail
	return string(text)
}

// Of returns the revision of a handler, and whether it failed. It reports false if the handler
// never ended under any revision.
func (m Marks) Of(id string) (revision string, failed, known bool) {
	revision, failed = m.Failed[id]
	if failed {
		return revision, true, true
	}
	revision, known = m.Done[id]
	return revision, false, known
}

// With returns the marks with another revision of a handler.
func (m Marks) With(id, revision string, failed bool) Marks {
	m.Done = without(m.Done, id)
	m.Failed = without(m.Failed, id)
	if failed {
		m.Failed[id] = revision
	} else {
		m.Done[id] = revision
	}
	return m
}

// Only returns the marks of these handlers.
func (m Marks) Only(ids []string) Marks {
	isOther := func(id, _ string) bool { return !slices.Contains(ids, id) }
	m.Done = without(m.Done, "")
	m.Failed = without(m.Failed, "")
	maps.DeleteFunc(m.Done, isOther)
	maps.DeleteFunc(m.Failed, isOther)
	return m
}

// without returns a copy without the key.
func without(from map[string]string, key string) map[string]string {
	rest := make(map[string]string, len(from)+1)
	maps.Copy(rest, from)
	delete(rest, key)
	return rest
}
