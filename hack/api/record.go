package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kopf-go/kopf/hack/source"
)

// fileOf returns the name of a package's file: pkg/model/object is in
// model.object.txt.
func fileOf(pkg *source.Package) string {
	return strings.ReplaceAll(strings.TrimPrefix(pkg.Path, "pkg/"), "/", ".") + ".txt"
}

// store writes the record, and removes the files of packages that are gone.
func store(folder string, record map[string]string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	stored, err := load(folder)
	if err != nil {
		return err
	}
	for name := range stored {
		if _, wanted := record[name]; !wanted {
			if err := os.Remove(filepath.Join(folder, name)); err != nil {
				return err
			}
		}
	}
	for name, text := range record {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// load returns the stored record. A folder that does not exist has none.
func load(folder string) (map[string]string, error) {
	entries, err := os.ReadDir(folder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	stored := map[string]string{}
	for _, entry := range entries {
		if filepath.Ext(entry.Name()) != ".txt" {
			continue
		}
		content, err := os.ReadFile(filepath.Join(folder, entry.Name()))
		if err != nil {
			return nil, err
		}
		stored[entry.Name()] = string(content)
	}
	return stored, nil
}

// compare prints the lines in which the stored record differs, and returns
// errUnrecorded if there are any.
func compare(out io.Writer, folder string, record map[string]string) error {
	stored, err := load(folder)
	if err != nil {
		return err
	}
	same := true
	for _, name := range names(stored, record) {
		if stored[name] == record[name] {
			continue
		}
		same = false
		_, _ = fmt.Fprintf(out, "api/%s:\n", name)
		for _, line := range without(stored[name], record[name]) {
			_, _ = fmt.Fprintf(out, "- %s\n", line)
		}
		for _, line := range without(record[name], stored[name]) {
			_, _ = fmt.Fprintf(out, "+ %s\n", line)
		}
	}
	if !same {
		return errUnrecorded
	}
	return nil
}

// names returns the sorted names of all files in the records.
func names(records ...map[string]string) []string {
	var found []string
	for _, record := range records {
		for name := range record {
			found = append(found, name)
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// without returns the lines of a text that another text does not contain.
func without(text, other string) []string {
	lines := strings.Split(other, "\n")
	return slices.DeleteFunc(strings.Split(text, "\n"), func(line string) bool { return slices.Contains(lines, line) })
}
