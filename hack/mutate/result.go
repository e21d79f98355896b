package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"
)

// result is the answer of the tests of a stage about a mutant.
type result struct {
	Reached  bool   `json:"reached,omitempty"`  // a test comes by the mutant
	Killer   string `json:"killer,omitempty"`   // the test that fails, or "" if the mutant survives
	TimedOut bool   `json:"timedOut,omitempty"` // the test does not end
}

var (
	failed  = regexp.MustCompile(`(?m)^--- FAIL: (\w+)`)
	endless = regexp.MustCompile(`(?s)test timed out.*?running tests:\s+(\w+)`)
	crashed = regexp.MustCompile(`\.(Test\w+)\(`)
)

// resultOf names the test that has failed according to its output.
func resultOf(output string) result {
	r := result{Reached: true, Killer: "a crash"}
	if match := endless.FindStringSubmatch(output); match != nil {
		r.Killer, r.TimedOut = match[1], true
		return r
	}
	for _, pattern := range []*regexp.Regexp{failed, crashed} {
		if match := pattern.FindStringSubmatch(output); match != nil {
			r.Killer = match[1]
			return r
		}
	}
	return r
}

// store keeps results outside of the checkout, so that a second run tries only mutants of
// changed packages, and with changed tests.
type store struct {
	path    string
	mu      sync.Mutex
	results map[string]result
	saved   time.Time
}

// saveInterval is the longest time whose results an interruption can lose.
const saveInterval = 10 * time.Second

// defaultResults returns the file of the store in the user's cache.
func defaultResults() string {
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir()
	}
	return filepath.Join(cache, "kopf-go", "mutate", "results.json")
}

func openStore(path string) (*store, error) {
	s := &store{path: path, results: map[string]result{}, saved: time.Now()}
	text, err := os.ReadFile(s.path)
	if errors.Is(err, os.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, &s.results); err != nil {
		return nil, fmt.Errorf("the results in %s cannot be read; remove the file: %w", s.path, err)
	}
	return s, nil
}

func (s *store) get(key string) (result, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, known := s.results[key]
	return r, known
}

// put adds a result, and saves all from time to time.
func (s *store) put(key string, r result) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.results[key] = r
	if time.Since(s.saved) >= saveInterval {
		_ = s.write() // at the end, save reports what keeps failing
	}
}

// save writes the results to the file.
func (s *store) save() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.write()
}

// write does the work of save. The caller must hold the lock.
func (s *store) write() error {
	s.saved = time.Now()
	text, err := json.MarshalIndent(s.results, "", " ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(s.path), 0o750); err != nil {
		return err
	}
	next := s.path + ".next"
	if err := os.WriteFile(next, text, 0o600); err != nil {
		return err
	}
	return os.Rename(next, s.path)
}

// fingerprints returns the keys of results. A result holds as long as the package of the mutant
// and that of the tests stay the same.
type fingerprints struct {
	root    string
	folders map[string]string
}

// key returns the key of the result of a mutant in a stage.
func (f *fingerprints) key(m *mutant, s stage) (string, error) {
	mutated, err := f.of(filepath.Dir(m.file))
	if err != nil {
		return "", err
	}
	tests, err := f.of(s.pkg)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%v %v %s %s", m.id, s, mutated, tests))
	return hex.EncodeToString(sum[:]), nil
}

// of returns a hash of the Go files in a folder.
func (f *fingerprints) of(folder string) (string, error) {
	if known := f.folders[folder]; known != "" {
		return known, nil
	}
	names, err := filepath.Glob(filepath.Join(f.root, folder, "*.go"))
	if err != nil {
		return "", err
	}
	hash := sha256.New()
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			return "", err
		}
		_, _ = io.Copy(hash, strings.NewReader(fmt.Sprintf("%s %d\n%s", filepath.Base(name), len(text), text)))
	}
	f.folders[folder] = hex.EncodeToString(hash.Sum(nil))
	return f.folders[folder], nil
}
