package protocol

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"strings"

	kjson "sigs.k8s.io/json"

	"github.com/kopf-go/kopf/internal/similar"
)

// Answer is the outcome of a call. The empty answer is a success.
type Answer struct {
	Error *Error `json:"error,omitempty"`
	// Result is stored in status.<id of the handler> if the call succeeds. That of a probe is a part of the
	// health endpoint.
	Result any `json:"result,omitempty"`
	// Patch is merged into the object (RFC 7386), also after an error.
	Patch map[string]any `json:"patch,omitempty"`
	// Operations change the object (RFC 6902), again after each conflict, and after the patch.
	Operations json.RawMessage `json:"operations,omitempty"`
	Events     []PostedEvent   `json:"events,omitempty"`
	// Conditions are added to status.conditions, or replace those of the same type.
	Conditions json.RawMessage `json:"conditions,omitempty"`
	// Subhandlers are declarations of parts of the handler, which are called next: each with an id, and
	// with the options of a file.
	Subhandlers json.RawMessage `json:"subhandlers,omitempty"`
	// Children are those that must exist, for ensure.
	Children []map[string]any `json:"children,omitempty"`
	// Index has the keys and values of the object, for index. An empty list removes those that the object has; without a list,
	// they stay.
	Index []KeyValue `json:"index,omitempty"`
	// Resolution says which changes stay, for drift: see Accepts.
	Resolution any `json:"resolution,omitempty"`
	// Object is the converted object, for convert.
	Object map[string]any `json:"object,omitempty"`
	// Warnings are shown to the user whose request is reviewed.
	Warnings []string `json:"warnings,omitempty"`
}

// KeyValue is one value of an object in an index.
type KeyValue struct {
	Key   any `json:"key"`
	Value any `json:"value"`
}

// Accepts returns which changes stay: all of them, or those of some fields. Without a resolution, none does.
func (a *Answer) Accepts() (all bool, fields []string, err error) {
	wrong := errors.New(`resolution must be "restore", "accept", or {"accept": ["spec.replicas"]}`)
	switch resolution := a.Resolution.(type) {
	case nil:
		return false, nil, nil
	case string:
		if resolution != "restore" && resolution != "accept" {
			return false, nil, wrong
		}
		return resolution == "accept", nil, nil
	case map[string]any:
		list, ok := resolution["accept"].([]any)
		if !ok || len(resolution) != 1 {
			return false, nil, wrong
		}
		for _, item := range list {
			field, ok := item.(string)
			if !ok {
				return false, nil, wrong
			}
			fields = append(fields, field)
		}
		return false, fields, nil
	default:
		return false, nil, wrong
	}
}

// Error is why a call has failed. It is temporary if it has a delay, permanent if it says so, and otherwise
// the handler's errors decide.
type Error struct {
	Message   string   `json:"message"`
	Delay     *float64 `json:"delay,omitempty"` // seconds
	Permanent bool     `json:"permanent,omitempty"`
	// Code is the HTTP status for a rejected request, from 400 to 599.
	Code int `json:"code,omitempty"`
}

// PostedEvent is a Kubernetes event about the object.
type PostedEvent struct {
	Type    string `json:"type,omitempty"` // default: Normal
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// ParseAnswer parses an answer. No text is the empty answer.
func ParseAnswer(data []byte) (*Answer, error) {
	answer := &Answer{}
	if len(bytes.TrimSpace(data)) == 0 {
		return answer, nil
	}
	if err := decodeStrict(data, answer); err != nil {
		return nil, fmt.Errorf("the answer cannot be used: %w", err)
	}
	if err := answer.validate(); err != nil {
		return nil, err
	}
	return answer, nil
}

// validate checks what the types do not say.
func (a *Answer) validate() error {
	var problems []error
	if e := a.Error; e != nil {
		if e.Message == "" {
			problems = append(problems, errors.New("error has no message"))
		}
		if e.Permanent && e.Delay != nil {
			problems = append(problems, errors.New("error has a delay, and is permanent: leave one of them out"))
		}
		if e.Delay != nil && *e.Delay < 0 {
			problems = append(problems, errors.New("the delay of error is negative"))
		}
		if e.Code != 0 && (e.Code < 400 || e.Code > 599) {
			problems = append(problems, fmt.Errorf("the code of error is %d: it must be from 400 to 599", e.Code))
		}
	}
	for _, event := range a.Events {
		problems = append(problems, event.validate())
	}
	_, _, err := a.Accepts()
	problems = append(problems, err)
	if err := errors.Join(problems...); err != nil {
		return fmt.Errorf("the answer cannot be used: %w", err)
	}
	return nil
}

func (e PostedEvent) validate() error {
	if e.Reason == "" {
		return errors.New("an event has no reason")
	}
	return nil
}

// unknownField is how the decoder names an unknown field.
var unknownField = regexp.MustCompile(`^unknown field "(.*)"$`)

// decodeStrict decodes one JSON value, with whole numbers as int64. Unknown and repeated fields are errors.
func decodeStrict(data []byte, into any) error {
	if trimmed := bytes.TrimSpace(data); len(trimmed) == 0 || trimmed[0] != '{' {
		return fmt.Errorf("it must be a JSON object, and begins with %q", beginning(trimmed))
	}
	strict, err := kjson.UnmarshalStrict(data, into)
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("the JSON ends too early")
	case err != nil:
		return err
	}
	for i, problem := range strict {
		if found := unknownField.FindStringSubmatch(problem.Error()); found != nil {
			strict[i] = fmt.Errorf("unknown word %s%s", found[1], suggestField(found[1], into))
		}
	}
	return errors.Join(strict...)
}

// suggestField returns the fields that may have been meant by a path.
func suggestField(path string, in any) string {
	name := path[strings.LastIndexByte(path, '.')+1:]
	var known []string
	collectFields(reflect.TypeOf(in), &known)
	if near := similar.Words(name, known); len(near) > 0 {
		return ": did you mean " + strings.Join(near, " or ") + "?"
	}
	return ""
}

// collectFields collects the names of all fields in a type.
func collectFields(of reflect.Type, names *[]string) {
	for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice {
		of = of.Elem()
	}
	if of.Kind() != reflect.Struct {
		return
	}
	for i := range of.NumField() {
		name, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ",")
		*names = append(*names, name)
		collectFields(of.Field(i).Type, names)
	}
}

// beginning returns the beginning of what was written, for messages.
func beginning(data []byte) string {
	const limit = 40
	if len(data) > limit {
		return string(data[:limit]) + "…"
	}
	return string(data)
}
