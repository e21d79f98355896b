package object

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"
	"testing"
)

func TestPackedSnapshotsAreTheSameAndSmaller(t *testing.T) {
	tests := map[string]struct {
		text  string
		limit int // of bytes when packed
	}{
		"the smallest object":     {`{}`, 2},
		"too short to be packed":  {`{"spec":{"size":"1"}}`, 21},
		"a word many times":       {`{"spec":"` + strings.Repeat("kopf ", 10_000) + `"}`, 200},
		"what does not repeat":    {fmt.Sprintf(`{"spec":"%x"}`, noise(100_000)), 200_100},
		"an object as it is kept": {string(served(t)), 1300},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			snapshot, err := ParseSnapshot([]byte(test.text))
			if err != nil {
				t.Fatal(err)
			}
			packed := snapshot.Packed()
			if len(packed.kept) > test.limit {
				t.Errorf("%d bytes became %d, more than %d", len(snapshot.kept), len(packed.kept), test.limit)
			}
			if parsed, err := ParsePacked([]byte(test.text)); err != nil || !reflect.DeepEqual(parsed, packed) || cap(parsed.kept) > len(parsed.kept)*5/4+8 {
				t.Errorf("parsed at once, it is %+v, %v", parsed, err)
			}
			if !reflect.DeepEqual(packed.Body().Raw(), snapshot.Body().Raw()) {
				t.Errorf("decoded, it is %v", packed.Body().Raw())
			}
			if !bytes.Equal(packed.json(), snapshot.json()) || packed.Size() != snapshot.Size() || packed.Packed() != packed {
				t.Errorf("it came back as %.100q", packed.json())
			}
		})
	}
}

func TestOnlyObjectsCanBePacked(t *testing.T) {
	for _, text := range []string{"", "[]", `{"metadata":`, "1"} {
		if parsed, err := ParsePacked([]byte(text)); parsed != nil || err == nil {
			t.Errorf("%s: got %v, %v", text, parsed, err)
		}
	}
}

// noise returns reproducible pseudo-random bytes.
func noise(size int) []byte {
	noise := make([]byte, size)
	for i, x := 0, uint32(1); i < len(noise); i++ {
		x = x*1664525 + 1013904223
		noise[i] = byte(x >> 24)
	}
	return noise
}

func BenchmarkPack(b *testing.B) {
	snapshot := parsed(b)
	b.ReportAllocs()
	for b.Loop() {
		snapshot.Packed()
	}
	b.ReportMetric(float64(len(snapshot.Packed().kept))/float64(len(snapshot.kept)), "ratio")
}

func BenchmarkUnpack(b *testing.B) {
	packed := parsed(b).Packed()
	b.ReportAllocs()
	for b.Loop() {
		if len(packed.json()) != packed.Size() {
			b.Fatal("not the same")
		}
	}
}

func parsed(b *testing.B) *Snapshot {
	b.Helper()
	snapshot, err := ParseSnapshot(served(b))
	if err != nil {
		b.Fatal(err)
	}
	return snapshot
}
