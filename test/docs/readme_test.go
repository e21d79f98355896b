package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A newcomer runs two commands. The README says what each does, how long it takes with
// nothing cached and afterwards, and what it needs; continuous integration runs the tests
// with the same command.
func TestReadmeHasTheTwoCommands(t *testing.T) {
	check := newCommandChecker(t)
	readme := pages(t)["README.md"]
	workflow, err := os.ReadFile(filepath.Join(root(t), ".ci", "run"))
	if err != nil {
		t.Fatal(err)
	}
	rowOf := regexp.MustCompile("(?m)^\\| `(make [a-z]+)` \\| ([^|]+) \\| ([^|]+) \\| ([^|]+) \\|$")
	rows := map[string][]string{}
	for _, row := range rowOf.FindAllStringSubmatch(readme, -1) {
		rows[row[1]] = row
	}
	time := regexp.MustCompile(`^\d+ (seconds|minutes), \d+ (seconds|minutes)$`)
	for _, command := range []string{"make run", "make test"} {
		row, found := rows[command]
		if !found {
			t.Errorf("README.md has no row for %q", command)
			continue
		}
		if err := check.command(strings.Fields(command)); err != nil {
			t.Errorf("%s: %v", command, err)
		}
		if !time.MatchString(row[3]) {
			t.Errorf("%s: %q is not the time with nothing cached and the time afterwards", command, row[3])
		}
		for _, needed := range []string{"Go", "git", "make"} {
			if !strings.Contains(row[4], needed) {
				t.Errorf("%s: the row does not say that it needs %s", command, needed)
			}
		}
	}
	if !regexp.MustCompile(`(?m)^make test$`).Match(workflow) {
		t.Error(".ci/run does not run make test, which the README names")
	}
}
