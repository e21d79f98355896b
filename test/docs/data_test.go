package docs

import (
	"encoding/json"
	"fmt"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// languages are the languages of blocks, and the functions that check a document in them.
var languages = map[string]func(text string) error{
	"":        nil, // commands
	"console": nil, // commands after "$ ", and their output
	"go":      nil,
	"mermaid": nil,
	"python":  nil,
	"text":    nil,
	"json":    func(text string) error { return json.Unmarshal([]byte(text), new(any)) },
	"sh":      parseShell,
	"yaml":    parseYAML,
}

func TestDataCanBeParsed(t *testing.T) {
	all := pages(t)
	for _, page := range slices.Sorted(maps.Keys(all)) {
		for _, one := range blocksOf(page, all[page]) {
			parse, known := languages[one.language]
			if !known {
				t.Errorf("%s:%d: %s is not a language of test/docs/data_test.go", page, one.line, one.language)
			}
			if parse == nil {
				continue
			}
			if err := parse(one.text); err != nil {
				t.Errorf("%s:%d: %v", page, one.line, err)
			}
		}
	}
}

// parseShell checks the syntax of a script, without running it.
func parseShell(text string) error {
	check := exec.Command("sh", "-n")
	check.Stdin = strings.NewReader(text)
	if output, err := check.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, output)
	}
	return nil
}

func parseYAML(text string) error {
	for document := range strings.SplitSeq(text, "---\n") {
		if err := yaml.UnmarshalStrict([]byte(document), new(any)); err != nil {
			return fmt.Errorf("%w in %s", err, document)
		}
	}
	return nil
}
