package main

import (
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"
)

// A run takes long, and may be killed.
func TestResultsAreSavedDuringARun(t *testing.T) {
	path := filepath.Join(t.TempDir(), "results.json")
	synctest.Test(t, func(t *testing.T) {
		s, err := openStore(path)
		if err != nil {
			t.Fatal(err)
		}
		s.put("a", result{Killer: "TestA"})
		time.Sleep(saveInterval)
		s.put("b", result{Killer: "TestB"})
		s.put("c", result{Killer: "TestC"}) // a moment later: lost, if the process ends now
		next, err := openStore(path)
		if err != nil {
			t.Fatal(err)
		}
		for key, want := range map[string]bool{"a": true, "b": true, "c": false} {
			if _, known := next.get(key); known != want {
				t.Errorf("%s: got %v", key, known)
			}
		}
	})
}
