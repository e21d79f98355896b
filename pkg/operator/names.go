package operator

import (
	"cmp"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/kopf-go/kopf/pkg/internal/program"
	"github.com/kopf-go/kopf/pkg/settings"
)

// fieldManager returns the field manager of the writes of the operator. It outlives the process, so it
// does not depend on the name of the program.
func fieldManager(s settings.Settings) string { return cmp.Or(s.Name, settings.DefaultName) }

// operatorName returns the name of the operator in the metrics.
func operatorName(s settings.Settings) string {
	return cmp.Or(s.Name, program.Name(), settings.DefaultName)
}

// eventComponent returns the source of the events: the first name that the API server accepts.
func eventComponent(s settings.Settings) string {
	for _, name := range []string{s.Posting.Component, s.Name, program.Name()} {
		if len(validation.IsQualifiedName(name)) == 0 {
			return name
		}
	}
	return settings.DefaultPostingComponent
}
