package revision

import (
	"testing"

	"github.com/kopf-go/kopf/pkg/model/object"
)

const annotation = "kopf.zalando.org/handled-revisions"

func bodyWith(text string) *object.Body {
	return object.NewBody(map[string]any{"metadata": map[string]any{"annotations": map[string]any{annotation: text}}})
}

func TestMarksAreReadAsTheyWereWritten(t *testing.T) {
	marks := Marks{}.With("a", "1", false).With("b", "x", true).With("a/spec.c", "", false)
	read := Read(bodyWith(marks.String()), annotation)
	if text := read.String(); text != `{"done":{"a":"1","a/spec.c":""},"failed":{"b":"x"}}` {
		t.Errorf("got %s", text)
	}
	for id, want := range map[string]struct {
		revision      string
		failed, known bool
	}{"a": {"1", false, true}, "b": {"x", true, true}, "a/spec.c": {"", false, true}, "c": {}} {
		if revision, failed, known := read.Of(id); revision != want.revision || failed != want.failed || known != want.known {
			t.Errorf("%s: got %s, %v, %v", id, revision, failed, known)
		}
	}
}

func TestAMarkReplacesTheFormerOne(t *testing.T) {
	before := Marks{}.With("a", "1", true)
	after := before.With("a", "2", false)
	if after.String() != `{"done":{"a":"2"}}` || before.String() != `{"failed":{"a":"1"}}` {
		t.Errorf("got %s, then %s", before, after)
	}
	if again := after.With("a", "3", true); again.String() != `{"failed":{"a":"3"}}` {
		t.Errorf("got %s", again)
	}
}

func TestOnlyKeepsTheMarksOfDeclaredHandlers(t *testing.T) {
	all := Marks{}.With("a", "1", false).With("b", "1", true).With("c", "1", false)
	if kept := all.Only([]string{"a", "b"}); kept.String() != `{"done":{"a":"1"},"failed":{"b":"1"}}` {
		t.Errorf("got %s", kept)
	}
	if none := (Marks{}).Only(nil); none.String() != `{}` {
		t.Errorf("got %s", none)
	}
}

func TestMarksThatCannotBeReadAreNone(t *testing.T) {
	for _, text := range []string{"", "x", "[]", `{"done":1}`, `{"done":{"a":1}}`, "null"} {
		if marks := Read(bodyWith(text), annotation); len(marks.Done)+len(marks.Failed) > 0 {
			t.Errorf("%s: got %+v", text, marks)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add(`{"done":{"a":"1"},"failed":{"b":"2"}}`)
	f.Fuzz(func(t *testing.T, text string) {
		marks := Read(bodyWith(text), annotation)
		if again := Read(bodyWith(marks.String()), annotation); again.String() != marks.String() {
			t.Errorf("got %s, then %s", marks, again)
		}
	})
}
