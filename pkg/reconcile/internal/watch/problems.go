package watch

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"

	"github.com/go-logr/logr"

	"github.com/kopf-go/kopf/pkg/internal/reportonce"
	"github.com/kopf-go/kopf/pkg/model/selector"
)

// problems logs the problems that prevent handlers from being called.
type problems struct {
	logger logr.Logger
	// remedy describes what must happen before they are called.
	remedy string
	// absence describes the same for resources that do not exist yet.
	absence string
	// places returns where the handlers with a selector are declared; nil if that is unknown.
	places   func(selector.Selector) []string
	reported reportonce.SharedTopics // by message
	current  map[string]struct{}     // the warnings of the last discovery
	missing  []*selector.NotFoundError
}

func newProblems(logger logr.Logger, scanningDisabled bool, places func(selector.Selector) []string) *problems {
	p := &problems{
		logger: logger, places: places, remedy: "Some handlers will not be called until this is corrected.",
		absence: "Some handlers will not be called until their resource exists; the operator looks for it again.",
	}
	if scanningDisabled {
		p.absence = "Some handlers will not be called until their resource exists and the operator is restarted."
		p.remedy = "Some handlers will not be called until this is corrected and the operator is restarted."
	}
	return p
}

// reportWarnings logs the new warnings of a discovery. A resource that does not exist may be installed
// after the operator, but until then, the operator does not do its work.
func (p *problems) reportWarnings(warnings []error) {
	now := map[string]struct{}{}
	p.missing = nil
	for _, warning := range warnings {
		text := warning.Error()
		now[text] = struct{}{}
		_, known := p.current[text]
		var missing *selector.NotFoundError
		var ambiguous *selector.AmbiguousError
		if errors.As(warning, &missing) {
			p.missing = append(p.missing, missing)
		}
		switch {
		case known:
		case missing != nil:
			p.logger.Error(warning, p.absence, p.declared(missing.Selector)...)
		case errors.As(warning, &ambiguous):
			p.logger.Error(warning, p.remedy, p.declared(ambiguous.Selector)...)
		default:
			p.logger.Error(warning, p.remedy)
		}
	}
	p.current = now
}

// declared returns the value of a line that says where the handlers with a selector are declared.
func (p *problems) declared(sel selector.Selector) []any {
	const most = 3
	if p.places == nil {
		return nil
	}
	places := p.places(sel)
	if len(places) > most {
		places = append(slices.Clone(places[:most]), "…")
	}
	return []any{"declared", strings.Join(places, ", ")}
}

// reportMissing logs the selectors that matched nothing in the last discovery. By now, a
// mistake in the name is more likely than a resource that is installed later.
func (p *problems) reportMissing() {
	for _, e := range p.missing {
		values := append([]any{"selector", e.Selector.String()}, p.declared(e.Selector)...)
		var near []string
		for _, r := range e.Near {
			near = append(near, r.String())
		}
		if len(near) > 0 {
			values = append(values, "similar", near)
		}
		p.logger.Error(nil, "Some handlers are still not called: the cluster has no resource for their selector. Compare it with the names and groups that kubectl api-resources lists.", values...)
	}
}

// reportOnce logs an error, unless it was the last one with this message; without a message, it keeps
// handlers from being called. Nil is the end of the problem.
func (p *problems) reportOnce(message string, err error) {
	if errors.Is(err, context.Canceled) {
		return
	}
	if err == nil {
		p.reported.Clear(message)
		return
	}
	text := err.Error()
	var network net.Error
	if errors.As(err, &network) {
		text = "the network" // the texts of network errors differ with every attempt
	}
	if !p.reported.Changed(message, text) {
		return
	}
	if message == "" {
		message = "Some handlers will not be called until this is corrected."
	}
	p.logger.Error(err, message)
}
