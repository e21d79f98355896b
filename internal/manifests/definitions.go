package manifests

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
)

// Definition is a custom resource definition.
type Definition struct {
	*unstructured.Unstructured
	// Path is the file that has the definition.
	Path string
}

// Definitions returns the custom resource definitions in files, and in folders with all folders
// below. Files with the endings .yaml, .yml, and .json count. Patches of definitions, as kubebuilder
// has them in config/crd/patches, are no definitions.
func Definitions(paths ...string) ([]Definition, error) { return read(paths, false) }

// Require returns what Definitions returns. A path without definitions is an error.
func Require(paths ...string) ([]Definition, error) { return read(paths, true) }

func read(paths []string, required bool) ([]Definition, error) {
	var found []Definition
	for _, path := range paths {
		files, err := filesIn(path)
		if err != nil {
			return nil, err
		}
		var in []Definition
		for _, file := range files {
			of, err := definitionsOf(file)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", file, err)
			}
			in = append(in, of...)
		}
		if required && len(in) == 0 {
			return nil, fmt.Errorf("%s: there are no custom resource definitions", path)
		}
		found, err = merge(found, in)
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}

// Files returns the files with the definitions.
func Files(definitions []Definition) []string {
	var files []string
	for _, one := range definitions {
		if !slices.Contains(files, one.Path) {
			files = append(files, one.Path)
		}
	}
	return files
}

// filesIn returns the files of a folder, and of all folders below, that may have objects. It follows
// a link that is named, as kubectl does, but none in a folder, because these can form circles.
func filesIn(root string) ([]string, error) {
	info, err := os.Stat(root)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return selectFiles(root), nil
	}
	var files []string
	err = fs.WalkDir(os.DirFS(root), ".", func(name string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			files = append(files, selectFiles(filepath.Join(root, filepath.FromSlash(name)))...)
		}
		return err
	})
	return files, err
}

// selectFiles returns the paths that end as files with objects do.
func selectFiles(paths ...string) []string {
	return slices.DeleteFunc(paths, func(path string) bool {
		return !slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(path))
	})
}

// definitionsOf returns the definitions of a file, which may have other content, too.
func definitionsOf(file string) ([]Definition, error) {
	text, err := os.ReadFile(file) //nolint:gosec // named by the developer
	if err != nil {
		return nil, err
	}
	all, err := documents(text)
	if err != nil {
		return nil, err
	}
	var found []Definition
	for _, document := range all {
		object := &unstructured.Unstructured{}
		if json.Unmarshal(document, &object.Object) == nil && isDefinition(object) {
			found = append(found, Definition{object, file})
		}
	}
	return found, nil
}

// isDefinition reports whether an object is a definition as a whole. Patches of definitions have
// the same kind, but neither a group nor names.
func isDefinition(object *unstructured.Unstructured) bool {
	group, _, _ := unstructured.NestedString(object.Object, "spec", "group")
	kind, _, _ := unstructured.NestedString(object.Object, "spec", "names", "kind")
	return object.GetKind() == "CustomResourceDefinition" && group != "" && kind != ""
}

// merge adds definitions to others. People often name whole folders, so the errors name the files.
func merge(found, further []Definition) ([]Definition, error) {
	for _, one := range further {
		if one.GetResourceVersion() != "" {
			return nil, fmt.Errorf("%s: the definition %s comes from a cluster (kubectl get -o yaml), which does not accept it with a "+
				"resourceVersion: remove what the server has added to metadata, or name only the files with your definitions", one.Path, one.GetName())
		}
		same := slices.IndexFunc(found, func(other Definition) bool { return other.GetName() == one.GetName() })
		switch {
		case same < 0:
			found = append(found, one)
		case !reflect.DeepEqual(found[same].Object, one.Object):
			return nil, fmt.Errorf("%s: another definition of %s is in %s", one.Path, one.GetName(), found[same].Path)
		}
	}
	return found, nil
}
