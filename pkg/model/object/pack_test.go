package object

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func TestSnapshotsArePackedIfThatMakesThemSmaller(t *testing.T) {
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
			if len(snapshot.kept) > test.limit || cap(snapshot.kept) > len(snapshot.kept)*5/4+8 {
				t.Errorf("%d bytes became %d in %d, more than %d", len(test.text), len(snapshot.kept), cap(snapshot.kept), test.limit)
			}
			var want map[string]any
			if err := json.Unmarshal([]byte(test.text), &want); err != nil {
				t.Fatal(err)
			}
			delete(m(want["metadata"]), "managedFields")
			if got := snapshot.Body().Raw(); !Equal(got, want) {
				t.Errorf("it came back as %v", got)
			}
			text := snapshot.json()
			if decoded := decode(text, nil); !Equal(decoded, want) || len(text) != snapshot.Size() {
				t.Errorf("its text came back as %.100q, of %d bytes", text, snapshot.Size())
			}
		})
	}
}

// m returns a mapping, which is nil if there is none.
func m(value any) map[string]any {
	mapping, _ := value.(map[string]any)
	return mapping
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

func BenchmarkUnpack(b *testing.B) {
	packed := parsed(b)
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
