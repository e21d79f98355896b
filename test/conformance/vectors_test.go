// Package conformance compares this project with behaviors that were measured on a running
// Kopf. They are stored as data: one JSON file per subject, with one test per file. The flag
// -vectors selects another directory with files of the same form.
package conformance

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"sigs.k8s.io/json"
)

var vectorsDir = flag.String("vectors", "testdata", "the directory of the vector files")

// vector is one measured behavior: its input and output.
type vector[I, E any] struct {
	Name   string `json:"name"`
	Input  I      `json:"input"`
	Expect E      `json:"expect"`
}

// load reads the vectors of one subject. It fails the test if there are none, so that a missing
// file does not count as a success.
func load[I, E any](t *testing.T, subject string) []vector[I, E] {
	t.Helper()
	var file struct {
		Vectors []vector[I, E] `json:"vectors"`
	}
	loadFile(t, subject, &file)
	if len(file.Vectors) == 0 {
		t.Fatalf("no vectors of %q in %s", subject, *vectorsDir)
	}
	return file.Vectors
}

func loadFile(t *testing.T, subject string, into any) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(*vectorsDir, subject+".json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := decode(data, into); err != nil {
		t.Fatalf("%s: %v", subject, err)
	}
}

// decode decodes JSON as the API machinery does: whole numbers become int64.
func decode(data []byte, into any) error {
	return json.UnmarshalCaseSensitivePreserveInts(data, into)
}
