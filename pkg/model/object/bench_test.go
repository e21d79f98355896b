package object

import (
	"os"
	"testing"
)

// served returns an object of 1 KB as the API server sends it after it was handled, with
// managedFields.
func served(t testing.TB) []byte {
	t.Helper()
	data, err := os.ReadFile("testdata/served.json")
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func BenchmarkParseSnapshot(b *testing.B) {
	data := served(b)
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ParseSnapshot(data); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDecodeBody(b *testing.B) {
	snapshot, err := ParseSnapshot(served(b))
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(snapshot.Size()))
	b.ReportAllocs()
	for b.Loop() {
		if snapshot.Body().Raw() == nil {
			b.Fatal("nothing was decoded")
		}
	}
}
