package object

import (
	"reflect"
	"testing"

	"github.com/tidwall/gjson"
	"sigs.k8s.io/json"
)

// decodings are texts that are difficult to decode.
var decodings = []string{
	`{}`, `{"a":{}}`, `{"a":[]}`, `{"a":[[],{},[{}]]}`, ` { "a" : [ 1 , "x" ] , "b" : null } `,
	`{"a":0,"b":-0,"c":-12,"d":9223372036854775807,"e":9223372036854775808,"f":1.0,"g":1e3,"h":-2.5E-3}`,
	`{"a":true,"b":false,"c":null}`,
	`{"":"","a b":"\"\\\/\b\f\n\r\t","\"":"\u00e9\u003c\ud83d\ude00","c":"\ud800x","d":"\\\\\""}`,
	"{\"a\":\"naïve ☃ 😀\",\"b\":\"\xff\xfe\",\"\xff\":1}",
	`{"metadata":{"name":"metadata","labels":{"name":"x"}},"kind":"kind","a":1,"a":{"b":2}}`,
}

func TestDecodeMatchesKubernetes(t *testing.T) {
	for _, text := range decodings {
		sameDecoding(t, text)
	}
	sameDecoding(t, string(served(t)))
}

func FuzzDecode(f *testing.F) {
	for _, text := range decodings {
		f.Add(text)
	}
	f.Fuzz(sameDecoding)
}

func sameDecoding(t *testing.T, text string) {
	t.Helper()
	var want map[string]any
	if !gjson.Valid(text) || !gjson.Parse(text).IsObject() || json.UnmarshalCaseSensitivePreserveInts([]byte(text), &want) != nil {
		return
	}
	if got := decode([]byte(text)); !reflect.DeepEqual(got, want) {
		t.Errorf("%s\nbecame %#v\n   not %#v", text, got, want)
	}
}
