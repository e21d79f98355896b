package inspect

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kopf-go/kopf/pkg/internal/plural"
)

// text writes the plan for one resource.
func (p *ResourcePlan) text(b *strings.Builder, style Style) {
	fmt.Fprintf(b, "%s: %s\n", p.Resource, plural.Of(p.Objects, "object", "objects"))
	fmt.Fprintf(b, "  %s, %s, and %s would be handled\n", plural.Of(p.Creations, "creation", "creations"),
		plural.Of(p.Updates, "update", "updates"), plural.Of(p.Deletions, "deletion", "deletions"))
	for _, line := range []struct {
		number    int
		one, many string
	}{
		{p.Continued, "object, whose handling has begun, would be continued", "objects, whose handling has begun, would be continued"},
		{p.Resumed, "object would be resumed when an operator starts", "objects would be resumed when an operator starts"},
		{p.Outside, "object is in a namespace that the operator does not serve", "objects are in namespaces that the operator does not serve"},
		{p.Suspended, "object is suspended, and left alone", "objects are suspended, and left alone"},
		{p.Undecidable, "object has handlers that are not decidable here: explain shows which", "objects have handlers that are not decidable here: explain shows which"},
		{p.ErrorCount, "object cannot be judged", "objects cannot be judged"},
	} {
		if line.number > 0 {
			style.Paragraph(b, "  ", plural.Of(line.number, line.one, line.many))
		}
	}
	if p.Daemons+p.Timers > 0 {
		fmt.Fprintf(b, "  %s and %s would run\n", plural.Of(p.Daemons, "daemon", "daemons"), plural.Of(p.Timers, "timer", "timers"))
	}
	for _, id := range slices.Sorted(maps.Keys(p.Calls)) {
		style.Paragraph(b, "  - ", fmt.Sprintf("%s would be called for %s", id, plural.Of(p.Calls[id], "object", "objects")))
	}
	for _, name := range slices.Sorted(maps.Keys(p.Undeclared)) {
		style.Paragraph(b, "  ! ", fmt.Sprintf("%s the progress of %s, which is not declared: it is neither continued nor removed. If the handler was renamed, declare it with its former id (kopf.ID).", plural.Of(p.Undeclared[name], "object has", "objects have"), name))
	}
	style.List(b, "", p.Examples)
	style.List(b, "", p.Errors)
}
