package golden

import (
	"os"
	"testing"
)

// Compare compares a text with a file that has nothing else. If KOPF_UPDATE_GOLDEN is set, it writes the file.
func Compare(t testing.TB, path, got string) {
	t.Helper()
	if os.Getenv("KOPF_UPDATE_GOLDEN") != "" {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs; if that is intended, run the test with KOPF_UPDATE_GOLDEN=1; got\n%s", path, got)
	}
}
