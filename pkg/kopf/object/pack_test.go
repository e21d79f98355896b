package object

import (
	"bytes"
	"strings"
	"testing"
)

func TestWhatIsPackedCanBeUnpacked(t *testing.T) {
	noise := make([]byte, 100_000) // of a simple generator, the same each time
	for i, x := 0, uint32(1); i < len(noise); i++ {
		x = x*1664525 + 1013904223
		noise[i] = byte(x >> 24)
	}
	tests := map[string]struct {
		text  string
		limit int // of bytes when packed
	}{
		"nothing":                 {"", 0},
		"one byte":                {"x", 2},
		"too short for a match":   {"aaaa", 5},
		"one letter many times":   {strings.Repeat("a", 10_000), 300},
		"a word many times":       {strings.Repeat("kopf ", 10_000), 1300},
		"a repetition far back":   {"repetition" + string(noise[:60_000]) + "repetition", 61_000},
		"a repetition beyond it":  {"repetition" + string(noise[:70_000]) + "repetition", 71_000},
		"what does not repeat":    {string(noise), 101_000},
		"an object as it is kept": {string(served(t)), 1500},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			packed := pack(nil, []byte(test.text))
			if len(packed) > test.limit {
				t.Errorf("%d bytes became %d, more than %d", len(test.text), len(packed), test.limit)
			}
			if got := unpack(packed, len(test.text)); string(got) != test.text {
				t.Errorf("it came back as %.100q", got)
			}
		})
	}
}

func FuzzPack(f *testing.F) {
	f.Add([]byte("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"), 3)
	f.Add([]byte(`{"spec":{"a":"b"},"metadata":{"annotations":{"base":"{\"spec\":{\"a\":\"b\"}}"}}}`), 1)
	f.Fuzz(func(t *testing.T, text []byte, times int) {
		text = bytes.Repeat(text, max(1, times%1000))
		packed := pack([]byte("before"), text)
		if got := unpack(packed[len("before"):], len(text)); !bytes.Equal(got, text) {
			t.Errorf("%.200q came back as %.200q", text, got)
		}
	})
}

func BenchmarkPack(b *testing.B) {
	text := served(b)
	var packed []byte
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		packed = pack(packed[:0], text)
	}
	b.ReportMetric(float64(len(packed))/float64(len(text)), "ratio")
}

func BenchmarkUnpack(b *testing.B) {
	text := served(b)
	packed := pack(nil, text)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if len(unpack(packed, len(text))) != len(text) {
			b.Fatal("not the same")
		}
	}
}
