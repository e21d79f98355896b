package main

import (
	"bytes"
	"cmp"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// sizes counts all Go files of the checkout, those of other operating systems and of
// nested modules included; not those in hidden folders. Production is what is under
// pkg and cmd; tests are the files named _test.go, everything under test, and all
// testdata; others are hack, examples, and so on. A package is a folder with Go
// files.
type sizes struct {
	production, tests, others size
	// packages are the folders under pkg and cmd, with the number of their files
	// other than tests; the largest comes first.
	packages []counted
	// longest are the lines of the files other than tests, everywhere; the longest
	// comes first.
	longest []counted
}

type size struct {
	lines, files, packages int
	folders                map[string]bool
}

// counted is something with a number.
type counted struct {
	name  string
	count int
}

func measureSizes(root string) (sizes, error) {
	var found sizes
	folders := map[string]int{}
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		switch hidden := name != root && strings.HasPrefix(entry.Name(), "."); {
		case err != nil:
			return err
		case hidden && entry.IsDir():
			return filepath.SkipDir
		case entry.IsDir() || filepath.Ext(name) != ".go":
			return nil
		}
		content, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		below, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		below, lines := filepath.ToSlash(below), bytes.Count(content, []byte("\n"))
		of := found.kind(below)
		of.add(path.Dir(below), lines)
		if of != &found.tests {
			found.longest = append(found.longest, counted{below, lines})
		}
		if of == &found.production {
			folders[path.Dir(below)]++
		}
		return nil
	})
	for folder, files := range folders {
		found.packages = append(found.packages, counted{folder, files})
	}
	slices.SortFunc(found.packages, largestFirst)
	slices.SortFunc(found.longest, largestFirst)
	return found, err
}

// kind returns the counter for the file.
func (s *sizes) kind(name string) *size {
	top, _, _ := strings.Cut(name, "/")
	switch {
	case strings.HasSuffix(name, "_test.go"), top == "test", strings.Contains(name, "/testdata/"):
		return &s.tests
	case top == "pkg", top == "cmd":
		return &s.production
	default:
		return &s.others
	}
}

func (s *size) add(folder string, lines int) {
	if s.folders == nil {
		s.folders = map[string]bool{}
	}
	if !s.folders[folder] {
		s.packages++
	}
	s.folders[folder] = true
	s.files++
	s.lines += lines
}

func largestFirst(a, b counted) int {
	return cmp.Or(cmp.Compare(b.count, a.count), cmp.Compare(a.name, b.name))
}
