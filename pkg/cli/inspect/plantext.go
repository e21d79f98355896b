package inspect

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// text writes the plan for one resource.
func (p *ResourcePlan) text(b *strings.Builder, style Style) {
	fmt.Fprintf(b, "%s: %d objects\n", p.Resource, p.Objects)
	fmt.Fprintf(b, "  %d creations, %d updates, %d deletions would be handled\n", p.Creations, p.Updates, p.Deletions)
	for _, line := range []struct {
		number int
		text   string
	}{
		{p.Continued, "whose handling has begun would be continued"},
		{p.Resumed, "would be resumed when an operator starts"},
		{p.Suspended, "are suspended, and left alone"},
		{p.Undecidable, "have handlers that are not decidable here: explain shows which"},
		{p.ErrorCount, "cannot be judged"},
	} {
		if line.number > 0 {
			style.Paragraph(b, "  ", fmt.Sprintf("%d %s", line.number, line.text))
		}
	}
	if p.Daemons+p.Timers > 0 {
		fmt.Fprintf(b, "  %d daemons and %d timers would run\n", p.Daemons, p.Timers)
	}
	for _, id := range slices.Sorted(maps.Keys(p.Calls)) {
		style.Paragraph(b, "  - ", fmt.Sprintf("%s would be called for %d objects", id, p.Calls[id]))
	}
	for _, name := range slices.Sorted(maps.Keys(p.Undeclared)) {
		style.Paragraph(b, "  ! ", fmt.Sprintf("%d objects have the progress of %s, which is not declared: it is neither continued nor removed. If the handler was renamed, declare it with its former id (kopf.ID).", p.Undeclared[name], name))
	}
	style.List(b, "", p.Examples)
	style.List(b, "", p.Errors)
}
