package kube

import (
	"io"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/selector"
)

func TestCodecDecodesObjectsAndFailures(t *testing.T) {
	tests := map[string]struct {
		data string
		want string // the kind, and what identifies the object
	}{
		"an object":  {`{"apiVersion":"kopf.dev/v1","kind":"KopfExample","metadata":{"name":"a"}}`, "kopf.dev/v1, Kind=KopfExample: object a"},
		"a failure":  {`{"apiVersion":"v1","kind":"Status","status":"Failure","message":"gone","reason":"Expired","code":410}`, "/v1, Kind=Status: status gone"},
		"a bookmark": {`{"apiVersion":"v1","kind":"Pod","metadata":{"resourceVersion":"9"}}`, "/v1, Kind=Pod: object "},
		"a status of another group": {
			`{"apiVersion":"example.com/v1","kind":"Status","metadata":{"name":"a"}}`, "example.com/v1, Kind=Status: object a",
		},
		"an object without a kind": {`{"metadata":{"name":"a"}}`, "/, Kind=: object a"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			decoded, gvk, err := codec{}.Decode([]byte(test.data), nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			if got := gvk.String() + ": " + describe(decoded); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// describe returns what identifies an object.
func describe(decoded runtime.Object) string {
	switch decoded := decoded.(type) {
	case *object.Snapshot:
		return "object " + decoded.GetName()
	case *metav1.Status:
		return "status " + decoded.Message
	default:
		return "something else"
	}
}

func TestCodecRejectsInvalidData(t *testing.T) {
	tests := map[string]string{
		"no data":             "",
		"a truncated object":  `{"apiVersion":"kopf.dev/v1","kind":"KopfExample","metadata":{"name"`,
		"a truncated failure": `{"apiVersion":"v1","kind":"Status","message":"go`,
		"a malformed failure": `{"apiVersion":"v1","kind":"Status","code":"four hundred"}`,
		"a page of a proxy":   `<html>Bad Gateway</html>`,
	}
	for name, data := range tests {
		t.Run(name, func(t *testing.T) {
			if decoded, _, err := (codec{}).Decode([]byte(data), nil, nil); err == nil {
				t.Errorf("got %+v", decoded)
			}
		})
	}
}

func TestCodecDoesNotEncode(t *testing.T) {
	if err := (codec{}).Encode(&object.Snapshot{}, io.Discard); err == nil {
		t.Error("got no error")
	}
}

var (
	kex  = selector.Resource{Group: "kopf.dev", Version: "v1", Plural: "kopfexamples", Kind: "KopfExample", Namespaced: true}
	pods = selector.Resource{Version: "v1", Plural: "pods", Kind: "Pod", Namespaced: true}
)

func TestParseList(t *testing.T) {
	tests := map[string]struct {
		data     string
		resource selector.Resource
		want     []string // the objects, as they are kept
	}{
		"custom resources with kinds": {
			`{"metadata":{"resourceVersion":"7","continue":"c"},"items":[{"apiVersion":"kopf.dev/v1","kind":"KopfExample","metadata":{"name":"a"}}]}`, kex,
			[]string{`{"apiVersion":"kopf.dev/v1","kind":"KopfExample","metadata":{"name":"a"}}`},
		},
		"resources of other groups without kinds": {
			`{"metadata":{"resourceVersion":"7","continue":"c"},"items":[{"metadata":{"name":"a"}}]}`, kex,
			[]string{`{"apiVersion":"kopf.dev/v1","kind":"KopfExample","metadata":{"name":"a"}}`},
		},
		"resources of the core group without kinds": {
			`{"metadata":{"resourceVersion":"7","continue":"c"},"items":[{"metadata":{"name":"a"}},{"metadata":{"name":"b"}}]}`, pods,
			[]string{`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"}}`, `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"b"}}`},
		},
		"a kind in the spec is ignored": {
			`{"metadata":{"resourceVersion":"7","continue":"c"},"items":[{"spec":{"kind":"X"}}]}`, pods,
			[]string{`{"apiVersion":"v1","kind":"Pod","spec":{"kind":"X"}}`},
		},
		"an empty object": {
			`{"metadata":{"resourceVersion":"7","continue":"c"},"items":[{}]}`, pods, []string{`{"apiVersion":"v1","kind":"Pod"}`},
		},
		"no items": {`{"metadata":{"resourceVersion":"7","continue":"c"},"items":[]}`, pods, nil},
		"null instead of items": {
			`{"metadata":{"resourceVersion":"7","continue":"c"},"items":null}`, pods, nil,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			list, err := parseList([]byte(test.data), test.resource, nil)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, item := range list.Items {
				text, _ := item.Body().JSON()
				got = append(got, string(text))
			}
			if strings.Join(got, "\n") != strings.Join(test.want, "\n") || list.ResourceVersion != "7" || list.Continue != "c" {
				t.Errorf("got %q, %q, %q", got, list.ResourceVersion, list.Continue)
			}
		})
	}
}

func TestParseListErrors(t *testing.T) {
	for name, data := range map[string]string{
		"strings": `{"items":["a"]}`, "numbers": `{"items":[{},1]}`, "lists": `{"items":[[{}]]}`, "a mapping": `{"items":{"a":"b"}}`,
		"items missing": `{"metadata":{"resourceVersion":"7"}}`, "an object": `{"kind":"KopfExample","metadata":{"name":"a"}}`,
	} {
		t.Run(name, func(t *testing.T) {
			if list, err := parseList([]byte(data), kex, nil); err == nil || !strings.Contains(err.Error(), "the list of kopfexamples.v1.kopf.dev") {
				t.Errorf("got %+v, %v", list, err)
			}
		})
	}
}

func TestListIsNotCopied(t *testing.T) {
	list := &List{}
	if list.DeepCopyObject() != runtime.Object(list) {
		t.Error("the list was copied")
	}
}

func FuzzList(f *testing.F) {
	f.Add(`{"metadata":{"resourceVersion":"7"},"items":[{"metadata":{"name":"a"}},{}]}`)
	f.Add(`{"items":{"a":{"b":1}}}`)
	f.Fuzz(func(_ *testing.T, data string) {
		list, err := parseList([]byte(data), pods, nil)
		if err == nil {
			for _, item := range list.Items {
				_ = item.Body().Raw()
			}
		}
		_, _, _ = codec{}.Decode([]byte(data), nil, nil)
	})
}
