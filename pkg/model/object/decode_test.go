package object

import (
	"reflect"
	"slices"
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

// relatives are texts that are nearly equal.
var relatives = []string{
	`{"a":{"b":1,"c":"x"}}`, `{"a":{"b":1,"c":"y"}}`, `{"a":{"b":1.0,"c":"x"}}`, `{"a":{"b":true,"c":"x"}}`, `{"a":{"b":1}}`,
	`{"a":{"b":1,"c":"x","d":null}}`, `{"a":{"c":"x","b":1}}`, `{"a":{"b":1,"b":1}}`, `{"a":{"b":1,"c":"\u0078"}}`, `{"a":{"b":1,"\u0063":"x"}}`,
	`{"a":{"b":1,"\\u0063":"x"}}`, `{"a":[1,"x",{"b":[]}]}`, `{"a":[1,"x",{"b":[]},2]}`, `{"a":[1,"x"]}`, `{"a":[]}`, `{"a":{}}`, `{"a":null}`, `{"a":"{"}`,
	`{"a":{"b":1,"c":"x"},"b":{"":"x"}}`, `{"a":{"":"","b":1,"c":"x"}}`,
}

// Whatever is known, the result is the same as without.
func TestWhatIsKnownDoesNotChangeWhatIsDecoded(t *testing.T) {
	texts := slices.Concat(relatives, decodings)
	for _, known := range texts {
		for _, text := range texts {
			sameBeside(t, text, known)
		}
	}
}

func FuzzDecodeBesideKnown(f *testing.F) {
	for i, text := range relatives {
		f.Add(text, relatives[0])
		f.Add(relatives[len(relatives)-1-i], text)
	}
	f.Fuzz(sameBeside)
}

func sameBeside(t *testing.T, text, known string) {
	t.Helper()
	beside, _ := ParseMapping(known, nil)
	want, ok := ParseMapping(text, nil)
	got, gotOK := ParseMapping(text, beside)
	if gotOK != ok || !reflect.DeepEqual(got, want) {
		t.Errorf("%s\nbeside %s became %#v\n                  not %#v", text, known, got, want)
	}
}

func TestKnownPartsAreTaken(t *testing.T) {
	known, _ := ParseMapping(`{"metadata":{"labels":{"a":"1"},"name":"x"},"spec":{"list":[1,2],"size":"large"}}`, nil)
	got, _ := ParseMapping(`{"metadata":{"labels":{"a":"1"}},"spec":{"list":[1,2],"size":"large"}}`, known)
	for _, field := range []Path{{"spec"}, {"metadata", "labels"}} {
		ours, _ := Lookup(got, field)
		theirs, _ := Lookup(known, field)
		if !isSame(m(ours), m(theirs)) {
			t.Errorf("%s was decoded again, although it is known", field)
		}
	}
	text := `{"spec":{"list":[1,2],"size":"large"}}`
	if allocations := testing.AllocsPerRun(100, func() { ParseMapping(text, known) }); allocations > 3 {
		t.Errorf("decoding what is known took %v allocations", allocations)
	}
}

func sameDecoding(t *testing.T, text string) {
	t.Helper()
	var want map[string]any
	if !gjson.Valid(text) || !gjson.Parse(text).IsObject() || json.UnmarshalCaseSensitivePreserveInts([]byte(text), &want) != nil {
		return
	}
	if got := decode([]byte(text), nil); !reflect.DeepEqual(got, want) {
		t.Errorf("%s\nbecame %#v\n   not %#v", text, got, want)
	}
}
