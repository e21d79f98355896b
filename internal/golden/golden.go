// Package golden keeps what tests expect in files: the sentences of a package in one File, so that a change of wording
// changes one file, or a whole text in a file by itself, see Compare. Facts are compared by the tests themselves.
package golden

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

var update = flag.Bool("update", false, "write the texts of the tests to the golden file, instead of comparing them")

// Updating reports whether the tests write the file. Flags must have been parsed.
func Updating() bool { return *update }

// File has one section for each situation. It is safe for concurrent use.
type File struct {
	path string

	mu       sync.Mutex
	sections map[string]string // nil before the first use
	used     map[string]bool
}

// In returns the file of a package. It is read when the first section is.
func In(path string) *File { return &File{path: path, used: map[string]bool{}} }

const title = "## "

// load reads the file. A run of all tests that updates it begins with an empty one, so that no section of
// a former test stays.
func (f *File) load() error {
	if f.sections != nil {
		return nil
	}
	f.sections = map[string]string{}
	if *update && isWholeRun() {
		return nil
	}
	text, err := os.ReadFile(f.path)
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		return err
	}
	for section := range strings.SplitSeq("\n"+string(text), "\n"+title) {
		name, body, _ := strings.Cut(section, "\n\n")
		if name != "" {
			f.sections[name] = strings.TrimSuffix(body, "\n") + "\n"
		}
	}
	return nil
}

// isWholeRun reports whether no flag leaves tests out.
func isWholeRun() bool {
	for _, name := range []string{"test.run", "test.skip"} {
		if set := flag.Lookup(name); set != nil && set.Value.String() != "" {
			return false
		}
	}
	return true
}

// Section returns the name of a section of a test.
func Section(t testing.TB, part string) string {
	name := strings.ReplaceAll(t.Name(), "_", " ")
	if part != "" {
		name += ": " + part
	}
	return name
}

// Difference compares a text with a section, and describes the first line that differs. It returns "" if
// there is none.
func (f *File) Difference(section, text string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.load(); err != nil {
		return err.Error()
	}
	f.used[section] = true
	want, found := f.sections[section]
	if !found {
		return fmt.Sprintf("%s has no section %q: run the test with -update", f.path, section)
	}
	text = normal(text)
	if text == want {
		return ""
	}
	gots := append(strings.Split(strings.TrimSuffix(text, "\n"), "\n"), theEnd)
	wants := append(strings.Split(strings.TrimSuffix(want, "\n"), "\n"), theEnd)
	i := 0
	for gots[i] == wants[i] {
		i++
	}
	return fmt.Sprintf("section %q of %s:\n  got  %s\n  want %s\nin\n%s", section, f.path, gots[i], wants[i], text)
}

// theEnd stands for the line after the last one of a text.
const theEnd = "(the end)"

// Check compares a text with a section, or writes it.
func (f *File) Check(t testing.TB, part, text string) {
	t.Helper()
	section := Section(t, part)
	if *update {
		f.Write(t, section, text)
		return
	}
	if difference := f.Difference(section, text); difference != "" {
		t.Error(difference)
	}
}

// Write replaces a section of the file.
func (f *File) Write(t testing.TB, section, text string) {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.load(); err != nil {
		t.Fatal(err)
	}
	f.used[section] = true
	f.sections[section] = normal(text)
	var out strings.Builder
	for i, name := range slices.Sorted(maps.Keys(f.sections)) {
		if i > 0 {
			out.WriteString("\n")
		}
		out.WriteString(title + name + "\n\n" + f.sections[name])
	}
	if err := os.MkdirAll(filepath.Dir(f.path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(f.path, []byte(out.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}

// Complete expects, when the test and its subtests have ended, that they have used all sections with the
// name of the test.
func (f *File) Complete(t testing.TB) {
	t.Helper()
	if !isWholeRun() {
		return
	}
	t.Cleanup(func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		for name := range f.sections {
			if strings.HasPrefix(name, Section(t, "")) && !f.used[name] {
				t.Errorf("%s: no situation uses the section %q", f.path, name)
			}
		}
	})
}

// normal returns a text without empty lines around it, and with one line break at its end.
func normal(text string) string { return strings.Trim(text, "\n") + "\n" }
