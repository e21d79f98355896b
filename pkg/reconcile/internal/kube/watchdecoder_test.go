package kube

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/serializer/streaming"
	"k8s.io/apimachinery/pkg/watch"
	restwatch "k8s.io/client-go/rest/watch"

	"github.com/kopf-go/kopf/pkg/model/object"
)

// event returns one frame of a watch.
func event(kind, name string, size int) string {
	return fmt.Sprintf(`{"type":%q,"object":{"apiVersion":"v1","kind":"A","metadata":{"name":%q,"resourceVersion":"7"},"text":"a \" {}%s"}}`,
		kind, name, strings.Repeat("x", size))
}

// decode returns the events of a response as client-go gets them, and the last error.
func decode(response io.Reader) (events []string, err error) {
	framer := watchDecoder{}
	decoder := restwatch.NewDecoder(streaming.NewDecoder(framer.NewFrameReader(io.NopCloser(response)), framer), codec{})
	for {
		kind, decoded, err := decoder.Decode()
		if err != nil {
			return events, err
		}
		switch decoded := decoded.(type) {
		case *object.Snapshot:
			events = append(events, string(kind)+" "+decoded.GetName())
		case *metav1.Status:
			events = append(events, string(kind)+" "+decoded.Message)
		}
	}
}

func TestWatchDecoder(t *testing.T) {
	added, modified := event("ADDED", "a", 10), event("MODIFIED", "b", 100<<10)
	tests := map[string]struct {
		response string
		events   []string
		err      error
	}{
		"no event":                 {"", nil, io.EOF},
		"one line per event":       {added + "\n" + modified + "\n" + added + "\n", []string{"ADDED a", "MODIFIED b", "ADDED a"}, io.EOF},
		"no line break at the end": {added + "\n" + modified, []string{"ADDED a", "MODIFIED b"}, io.EOF},
		"empty lines in between":   {"\n" + added + "\r\n \n" + added + "\n", []string{"ADDED a", "ADDED a"}, io.EOF},
		"a frame of several lines": {
			strings.NewReplacer(`,"`, ",\n\"", `{"`, "{\n\"").Replace(added) + "\n" + added + "\n",
			[]string{"ADDED a", "ADDED a"},
			io.EOF,
		},
		"fields in another order": {`{"object":{"metadata":{"name":"a"}},"type":"DELETED"}` + "\n", []string{"DELETED a"}, io.EOF},
		"a bookmark":              {event("BOOKMARK", "", 0) + "\n", []string{"BOOKMARK "}, io.EOF},
		"an error of the server": {
			`{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","code":410,"message":"too old"}}` + "\n",
			[]string{"ERROR too old"},
			io.EOF,
		},
		"a broken connection": {added + "\n" + modified[:1000], []string{"ADDED a"}, io.ErrUnexpectedEOF},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			for how, reader := range map[string]io.Reader{
				"at once": strings.NewReader(test.response), "byte by byte": iotest.OneByteReader(strings.NewReader(test.response)),
			} {
				events, err := decode(reader)
				if fmt.Sprint(events) != fmt.Sprint(test.events) || !errors.Is(err, test.err) {
					t.Errorf("%s: got %v and then %v, want %v and then %v", how, events, err, test.events, test.err)
				}
			}
		})
	}
}

func TestInvalidEventEndsTheWatch(t *testing.T) {
	for _, response := range []string{
		`{"type":"ADDED"}`, `{"object":{}}`, `{"type":"ADDED","object":[]}`, `{"type":5,"object":{}}`,
		`{"type":"SOMETHING","object":{}}`, `{"type":"ADDED","object":{"a":}}`, `[]`, `invalid`,
	} {
		if events, err := decode(strings.NewReader(response + "\n" + event("ADDED", "a", 0) + "\n")); err == nil || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || events != nil {
			t.Errorf("%s: got %v and then %v", response, events, err)
		}
	}
}

func TestFrameSizeIsLimited(t *testing.T) {
	if _, err := decode(io.LimitReader(endless{}, 2*maxFrame)); err == nil || errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("got %v", err)
	}
}

// endless never ends a frame.
type endless struct{}

func (endless) Read(into []byte) (int, error) {
	for i := range into {
		into[i] = '{'
	}
	return len(into), nil
}

func BenchmarkWatchEvent(b *testing.B) {
	text := event(string(watch.Modified), "a", 3000) + "\n"
	framer := watchDecoder{}
	decoder := restwatch.NewDecoder(streaming.NewDecoder(framer.NewFrameReader(io.NopCloser(&repeated{text: text})), framer), codec{})
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := decoder.Decode(); err != nil {
			b.Fatal(err)
		}
	}
}

// repeated repeats a text endlessly.
type repeated struct {
	text string
	at   int
}

func (r *repeated) Read(into []byte) (int, error) {
	n := copy(into, r.text[r.at:])
	r.at = (r.at + n) % len(r.text)
	return n, nil
}
