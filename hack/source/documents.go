package source

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Documents returns the texts of all Markdown files of the checkout in dir, by their
// paths below it. It skips hidden folders.
func Documents(dir string) (map[string]string, error) {
	found := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		switch hidden := path != dir && strings.HasPrefix(entry.Name(), "."); {
		case err != nil:
			return err
		case hidden && entry.IsDir():
			return filepath.SkipDir
		case filepath.Ext(path) != ".md":
			return nil
		}
		content, err := os.ReadFile(path)
		name, _ := filepath.Rel(dir, path)
		found[filepath.ToSlash(name)] = string(content)
		return err
	})
	return found, err
}
