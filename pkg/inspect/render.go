package inspect

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kopf-go/kopf/pkg/internal/plural"
)

// Style is how texts are written.
type Style struct {
	Width  int // of lines; 0 for no limit
	Colors bool
}

// the colors of a terminal, by states.
const (
	red    = "\x1b[31m"
	green  = "\x1b[32m"
	yellow = "\x1b[33m"
	gray   = "\x1b[90m"
	reset  = "\x1b[0m"
)

// colorOf returns the color of a state.
func colorOf(state string) string {
	switch state {
	case "failed", "misfit":
		return red
	case "due", background, "succeeded", "ready", "onRequest":
		return green
	case "waiting", "suspended", "paused", "undecidable", "dropped":
		return yellow
	default:
		return gray
	}
}

// Text returns the explanation for a person.
func (e *Explanation) Text(style Style) string {
	var b strings.Builder
	name := e.Object
	if e.Namespace != "" {
		name += " in the namespace " + e.Namespace
	}
	b.WriteString(name + "\n")
	style.Paragraph(&b, "  ", e.State)
	style.Paragraph(&b, "  ", e.Failing)
	style.List(&b, "", e.Changes)
	style.List(&b, "Nothing happens now, because", e.Holds)
	style.List(&b, "Perhaps nothing happens now, because", e.PossibleHolds)
	b.WriteString("\nHandlers\n")
	for _, h := range e.Handlers {
		mark := "-"
		if style.Colors {
			mark = colorOf(h.State) + "●" + reset
		}
		style.Paragraph(&b, "  "+mark+" ", fmt.Sprintf("%s (%s) %s", h.ID, h.Kind, h.Message))
		if h.Todo != "" {
			style.Paragraph(&b, "      ", "→ "+h.Todo)
		}
		if h.DeclaredAt != "" && !strings.Contains(h.Message, h.DeclaredAt) {
			style.Paragraph(&b, "      ", "declared at "+h.DeclaredAt)
		}
	}
	if len(e.Handlers) == 0 {
		b.WriteString("  (none)\n")
	}
	if e.Now != nil {
		style.List(&b, "Now, according to the operator at "+e.Now.Endpoint, e.Now.Findings)
	}
	holders := "Leader"
	if e.isShared {
		holders = "Shard"
	}
	style.List(&b, holders, e.Leader)
	style.List(&b, "Conditions", e.Conditions)
	style.List(&b, "Events", e.Events)
	children := make([]string, len(e.Children))
	for i, child := range e.Children {
		children[i] = fmt.Sprintf("%s (%s) %s", child.Object, child.Handler, child.Message)
	}
	style.List(&b, "Children", children)
	style.List(&b, "Requests", e.Requests)
	style.List(&b, "Deletion", e.Deletion)
	peers := make([]string, len(e.Peers))
	for i, peer := range e.Peers {
		peers[i] = peer.Object + ": " + peer.String()
	}
	style.List(&b, "Peering", peers)
	style.List(&b, "Notes", e.Notes)
	return b.String()
}

// List writes a title, unless it is empty, and paragraphs. It writes nothing without lines.
func (s Style) List(b *strings.Builder, title string, lines []string) {
	if len(lines) == 0 {
		return
	}
	if title != "" {
		b.WriteString("\n" + title + "\n")
	}
	for _, line := range lines {
		s.Paragraph(b, "  - ", line)
	}
}

// Paragraph writes a text in lines of the width. The lines of the text are kept, such as those of
// several errors.
func (s Style) Paragraph(b *strings.Builder, indent, text string) {
	for line := range strings.Lines(text) {
		s.line(b, indent, strings.TrimSuffix(line, "\n"))
		indent = continued
	}
}

// continued is the indentation of all lines but the first of a text.
const continued = "      "

// line writes one line of a text, in several ones if it is too long.
func (s Style) line(b *strings.Builder, indent, text string) {
	room := s.Width - len(continued)
	if s.Width == 0 || room < minRoom {
		b.WriteString(indent + text + "\n")
		return
	}
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && len(line)+1+len(word) > room {
			b.WriteString(indent + line + "\n")
			line = ""
			indent = continued
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	b.WriteString(indent + line + "\n")
}

// minRoom is the smallest width of a text that is worth breaking lines.
const minRoom = 30

// Text returns the plan for a person.
func (p *Plan) Text(style Style) string {
	var b strings.Builder
	for i, r := range p.Resources {
		if i > 0 {
			b.WriteString("\n")
		}
		r.text(&b, style)
	}
	if len(p.Resources) == 0 {
		b.WriteString("The cluster serves no resources that this program has handlers for.\n")
	}
	style.List(&b, "Nothing happens, because", p.Refusals)
	style.List(&b, "Perhaps nothing happens, because", p.PossibleRefusals)
	style.List(&b, "Notes", p.Notes)
	return b.String()
}

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
		{p.RollingOut, "object would be handled as an update without changes, when a rollout reaches it", "objects would be handled as updates without changes, in the steps of a rollout"},
		{p.Waiting, "object waits for a rollout that is stopped, and would not be handled", "objects wait for a rollout that is stopped, and would not be handled"},
		{p.Outside, "object is in a namespace that the operator does not serve", "objects are in namespaces that the operator does not serve"},
		{p.Suspended, "object is suspended, and left alone", "objects are suspended, and left alone"},
		{p.ErrorCount, "object cannot be judged", "objects cannot be judged"},
		{p.Objects - p.handled() - p.Waiting - p.Outside - p.Suspended - p.ErrorCount, "object would not be handled: nothing that handlers are for has happened to it", "objects would not be handled: nothing that handlers are for has happened to them"},
		{p.Resumed, "of these objects would be resumed when an operator starts", "of these objects would be resumed when an operator starts"},
		{p.Undecidable, "of these objects has handlers that are not decidable here: explain shows which", "of these objects have handlers that are not decidable here: explain shows which"},
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
	for _, stopped := range p.StoppedRollouts {
		style.Paragraph(b, "  ! ", stopped.String())
	}
	for _, id := range slices.Sorted(maps.Keys(p.ForgottenFailures)) {
		style.Paragraph(b, "  ! ", fmt.Sprintf("%s stalled by a failure of %s, which is not declared: it no longer counts, and without another reason, the condition Ready becomes true. If the handler was renamed, declare it with its former id (kopf.ID).", plural.Of(p.ForgottenFailures[id], "object is", "objects are"), id))
	}
	for _, name := range slices.Sorted(maps.Keys(p.Undeclared)) {
		style.Paragraph(b, "  ! ", fmt.Sprintf("%s the progress of %s, which is not declared: it is neither continued nor removed. If the handler was renamed, declare it with its former id (kopf.ID).", plural.Of(p.Undeclared[name], "object has", "objects have"), name))
	}
	style.List(b, "", andMore(p.Examples, p.handled()))
	style.List(b, "", andMore(p.Errors, p.ErrorCount))
}

// handled returns the number of objects that would be handled.
func (p *ResourcePlan) handled() int {
	return p.Creations + p.Updates + p.Deletions + p.Continued + p.RollingOut
}

// andMore says how many objects of all are not in a list of examples.
func andMore(examples []string, all int) []string {
	if len(examples) == 0 || all <= len(examples) {
		return examples
	}
	return append(slices.Clip(examples), fmt.Sprintf("and %d more", all-len(examples)))
}
