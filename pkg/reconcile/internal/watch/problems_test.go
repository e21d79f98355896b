package watch

import (
	"errors"
	"slices"
	"testing"

	"github.com/go-logr/logr/funcr"

	"github.com/kopf-go/kopf/pkg/model/selector"
)

// A resource that does not exist yet is not logged as an error, and each problem only once.
func TestWarningsAreLoggedByTheirImportance(t *testing.T) {
	var lines []string
	logger := funcr.NewJSON(func(line string) { lines = append(lines, line) }, funcr.Options{})
	p := newProblems(logger, false)
	warnings := []error{&selector.NotFoundError{Selector: selector.New("kex")}, errors.New("another")}
	p.reportWarnings(warnings)
	p.reportWarnings(warnings)
	want := []string{
		`{"logger":"","level":0,"msg":"Some handlers will not be called until their resource exists; the operator looks for it again.",` +
			`"problem":"\"kex\" selects nothing in this cluster: install its CustomResourceDefinition, or correct the name"}`,
		`{"logger":"","msg":"Some handlers will not be called until this is corrected.","error":"another"}`,
	}
	if !slices.Equal(lines, want) {
		t.Errorf("got %q", lines)
	}
}
