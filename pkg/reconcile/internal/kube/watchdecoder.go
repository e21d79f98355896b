package kube

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/tidwall/gjson"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
)

// watchDecoder reads the frames of a watch: a frame is a line, and its two fields are
// cut out of it.
type watchDecoder struct{ codec }

var (
	_ runtime.Serializer = watchDecoder{}
	_ runtime.Framer     = watchDecoder{}
)

// Identifier distinguishes serializers.
func (watchDecoder) Identifier() runtime.Identifier { return "kopf-watch" }

// Decode reads a watch event. Its object shares the bytes of the frame.
func (d watchDecoder) Decode(frame []byte, _ *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	event, ok := into.(*metav1.WatchEvent)
	if !ok {
		return nil, nil, fmt.Errorf("a watch delivers events, not %T", into)
	}
	kind, object, ok := splitEvent(frame)
	if !ok {
		return nil, nil, errors.New("an event of the watch is truncated, or is not an event")
	}
	event.Type = kind
	event.Object.Raw = object
	return event, &schema.GroupVersionKind{Version: "v1", Kind: "WatchEvent"}, nil
}

// splitEvent splits a frame into its two fields. API servers write them in the order
// of the Go type, which is recognized without reading the object; in other frames, the
// fields are searched.
func splitEvent(frame []byte) (kind string, object []byte, ok bool) {
	rest, prefixed := bytes.CutPrefix(frame, []byte(`{"type":"`))
	word, object, separated := bytes.Cut(rest, []byte(`","object":`))
	object, closed := bytes.CutSuffix(object, []byte(`}`))
	if prefixed && separated && closed {
		return string(word), object, len(object) > 0
	}
	fields := gjson.GetManyBytes(frame, "type", "object")
	return fields[0].Str, []byte(fields[1].Raw), fields[0].Type == gjson.String && fields[1].IsObject()
}

// NewFrameReader splits the response to a watch request into frames.
func (d watchDecoder) NewFrameReader(answer io.ReadCloser) io.ReadCloser {
	return &frameReader{Closer: answer, buffer: bufio.NewReaderSize(answer, readBufferSize), share: d.share}
}

// NewFrameWriter is never used: the engine sends no streams.
func (watchDecoder) NewFrameWriter(into io.Writer) io.Writer { return into }

// readBufferSize is how much is read from the connection at once: a few objects.
const readBufferSize = 16 << 10

// maxFrame is the size above which a frame is not read to its end. client-go has the
// same limit; etcd accepts much less.
const maxFrame = 16 << 20

// frameReader returns one frame after another, as runtime.Framer requires.
//
// Of an event of an object that the share does not have, only the version is news: it becomes a bookmark. Bookmarks are
// for the next watch, so some of them suffice, and the other frames are dropped here: each one that is returned wakes three
// goroutines, and without shards on the API server, most events are of other replicas.
type frameReader struct {
	io.Closer
	buffer *bufio.Reader
	frame  []byte    // reused
	rest   []byte    // of the frame, not returned yet
	share  *Share    // nil: all objects
	marked time.Time // when the last event became a bookmark
}

// markPause is the pause between two events that become bookmarks. It is far shorter than the time after which a silent
// watch is ended.
const markPause = 100 * time.Millisecond

// Read returns a frame, or a part of it with io.ErrShortBuffer.
func (f *frameReader) Read(into []byte) (int, error) {
	for len(f.rest) == 0 {
		if err := f.readFrame(); err != nil {
			return 0, err
		}
		f.dropOthers()
	}
	n := copy(into, f.rest)
	f.rest = f.rest[n:]
	if len(f.rest) > 0 {
		return n, io.ErrShortBuffer
	}
	return n, nil
}

// dropOthers replaces a frame of an object that the share does not have.
func (f *frameReader) dropOthers() {
	if f.share == nil || f.share.Whole {
		return
	}
	_, object, ok := splitEvent(f.rest)
	get := func(path string) gjson.Result { return gjson.GetBytes(object, path) }
	if !ok || f.share.hasJSON(get) {
		return
	}
	f.rest = nil
	if now := time.Now(); now.Sub(f.marked) >= markPause {
		f.marked = now
		f.rest = fmt.Appendf(nil, `{"type":%q,"object":{"metadata":{"resourceVersion":%q}}}`, watch.Bookmark, get("metadata.resourceVersion").Str)
	}
}

// readFrame reads a frame: a line, as all Kubernetes API servers write it, or several
// lines, if something in between has broken it.
func (f *frameReader) readFrame() error {
	f.frame = f.frame[:0]
	for len(f.frame) <= maxFrame {
		part, err := f.buffer.ReadSlice('\n')
		f.frame = append(f.frame, part...)
		frame := bytes.TrimSpace(f.frame)
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil && len(frame) > 0 && gjson.ValidBytes(frame):
		case errors.Is(err, io.EOF) && len(frame) > 0:
			return io.ErrUnexpectedEOF
		case err != nil:
			return err
		case !isComplete(frame):
			continue
		}
		f.rest = frame
		return nil
	}
	return fmt.Errorf("an event of the watch has more than %d bytes", maxFrame)
}

// isComplete reports whether the lines are a whole frame. A single line is recognized
// by its ends; whether it is valid, the decoder of the object finds out. Text that
// does not even begin like an event is complete, too, and fails later.
func isComplete(frame []byte) bool {
	switch {
	case len(frame) == 0:
		return false
	case frame[0] != '{':
		return true
	case bytes.IndexByte(frame, '\n') < 0 && len(frame) > len("{}") && frame[len(frame)-1] == '}':
		return true
	default:
		return gjson.ValidBytes(frame)
	}
}
