package reconcile

import (
	"context"
	"errors"
)

// tell warns of what keeps handlers from being called, each time that it begins.
func (o *orchestrator) tell(warnings []error) {
	remedy := "Some handlers will not be called until this is corrected."
	if o.Settings.Scanning.Disabled {
		remedy = "Some handlers will not be called until this is corrected and the operator is restarted."
	}
	now := map[string]struct{}{}
	for _, warning := range warnings {
		text := warning.Error()
		now[text] = struct{}{}
		if _, known := o.warned[text]; !known {
			o.Logger.Error(warning, remedy)
		}
	}
	o.warned = now
}

// complain logs an error once.
func (o *orchestrator) complain(message string, err error) {
	if err == nil || errors.Is(err, context.Canceled) || !o.once(message+err.Error()) {
		return
	}
	if message == "" {
		message = "Some handlers will not be called until this is corrected."
	}
	o.Logger.Error(err, message)
}
