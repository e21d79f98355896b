package protocol_test

import (
	"bytes"
	"encoding/json"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/kopf-go/kopf/pkg/serve/document"
	"github.com/kopf-go/kopf/pkg/serve/protocol"
)

// example matches an example of the guide: who says it, and the JSON.
var example = regexp.MustCompile("(?s)<!-- (call|answer|operator|worker|refused: [^\n]*) -->\n\n```json\n(.*?)```")

func guide(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../../docs/protocol.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// The examples of the guide are what the operator writes, byte for byte but for blanks, and what it reads.
func TestTheExamplesOfTheGuideAreExecuted(t *testing.T) {
	seen := map[string]int{}
	for _, found := range example.FindAllStringSubmatch(guide(t), -1) {
		who, _, _ := strings.Cut(found[1], ":")
		seen[who]++
		var line bytes.Buffer
		if err := json.Compact(&line, []byte(found[2])); err != nil {
			t.Errorf("%v in %s", err, found[2])
			continue
		}
		switch who {
		case "call":
			same(t, line.Bytes(), &protocol.Call{})
		case "operator":
			same(t, line.Bytes(), &protocol.Message{})
		case "answer":
			answer, err := protocol.ParseAnswer(line.Bytes())
			if err != nil {
				t.Errorf("%v for %s", err, found[2])
				continue
			}
			if _, err := document.ParseSubhandlers("the example", "", answer.Subhandlers); err != nil {
				t.Error(err)
			}
		case "worker":
			m, err := protocol.ParseMessage(line.Bytes())
			if err != nil {
				t.Errorf("%v for %s", err, found[2])
				continue
			}
			if m.Type == protocol.Hello && len(m.Handlers) > 0 {
				if _, err := document.ParseHello(&document.Worker{Name: "example"}, "", m.Handlers); err != nil {
					t.Error(err)
				}
			}
		case "refused":
			want := strings.TrimPrefix(found[1], "refused: ")
			if _, err := protocol.ParseAnswer(line.Bytes()); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want %q for %s", err, want, found[2])
			}
		}
	}
	for who, least := range map[string]int{"call": 3, "answer": 7, "operator": 10, "worker": 7, "refused": 1} {
		if seen[who] < least {
			t.Errorf("the guide has %d examples of %s, want %d", seen[who], who, least)
		}
	}
}

// same checks that a value is read and written without a difference.
func same(t *testing.T, line []byte, into any) {
	t.Helper()
	decoder := json.NewDecoder(bytes.NewReader(line))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		t.Errorf("%v for %s", err, line)
		return
	}
	if got, err := json.Marshal(into); err != nil || !bytes.Equal(got, line) {
		t.Errorf("the operator writes\n%s, %v\nand the guide has\n%s", got, err, line)
	}
}

// The guide names all words of all messages.
func TestTheGuideNamesAllWords(t *testing.T) {
	text := guide(t)
	for _, of := range []any{protocol.Call{}, protocol.Answer{}, protocol.Error{}, protocol.PostedEvent{}, protocol.Review{}, protocol.IndexEntry{}, protocol.Drift{}, protocol.DriftedField{}, protocol.KeyValue{}, protocol.Message{}, protocol.Edit{}} {
		fields := reflect.TypeOf(of)
		for i := range fields.NumField() {
			name, _, _ := strings.Cut(fields.Field(i).Tag.Get("json"), ",")
			if !strings.Contains(text, "`"+name+"`") && !strings.Contains(text, `"`+name+`":`) {
				t.Errorf("the guide does not name %s of %s", name, fields.Name())
			}
		}
	}
}

func TestAnswersAreStrict(t *testing.T) {
	for text, want := range map[string]string{
		"":                            "",
		" \n":                         "",
		"{}":                          "",
		"null":                        `it must be a JSON object, and begins with "null"`,
		"[]":                          `begins with "[]"`,
		"{":                           "the answer cannot be used",
		`{"result": 1} {"result": 2}`: "the answer cannot be used",
		`{"result": 1, "result": 2}`:  `duplicate field "result"`,
		`{"Result": 1}`:               "unknown word Result: did you mean result?",
		`{"error": {}}`:               "error has no message",
		`{"error": {"message": "a", "delay": -1}}`:                   "the delay of error is negative",
		`{"error": {"message": "a", "delay": 1, "permanent": true}}`: "leave one of them out",
		`{"error": {"message": "a", "code": 200}}`:                   "the code of error is 200: it must be from 400 to 599",
		`{"error": "a"}`:                 "the answer cannot be used",
		`{"events": [{"message": 5}]}`:   "the answer cannot be used",
		`{"events": [{"message": "a"}]}`: "an event has no reason",
		`{"index": {"a": 1}}`:            "the answer cannot be used",
		`{"index": [{"kye": 1}]}`:        "unknown word index[0].kye: did you mean key?",
		`{"resolution": "acept"}`:        `resolution must be "restore", "accept", or {"accept": ["spec.replicas"]}`,
		`{"resolution": {"accept": 1}}`:  "resolution must be",
		`{"resolution": {"acept": []}}`:  "resolution must be",
		`{"resolution": ["spec"]}`:       "resolution must be",
	} {
		_, err := protocol.ParseAnswer([]byte(text))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
}

// No line of a worker makes the decoder panic, and none that it accepts lacks what its type needs.
func FuzzParseMessage(f *testing.F) {
	f.Add([]byte(`{"type": "answer", "id": "1", "answer": {"result": [1]}}`))
	f.Add([]byte(`{"type": "hello", "version": 1, "handlers": []}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		m, err := protocol.ParseMessage(line)
		if err == nil && m.Type == protocol.Respond {
			if m.ID == "" {
				t.Errorf("accepted %q", line)
			}
			_, _ = protocol.ParseAnswer(m.Answer) // it may be refused, but must not panic
		}
	})
}
