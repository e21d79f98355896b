package execution

// Failures returns the messages of the handlers that have failed permanently in the cycle,
// including sub-handlers.
func (p *Progress) Failures() map[string]string {
	var failed map[string]string
	for id, state := range p.states {
		if state.active && state.Failure {
			if failed == nil {
				failed = map[string]string{}
			}
			failed[id] = state.Message
		}
	}
	return failed
}

// HasUnfinished reports whether a handler of the cycle will be called again by itself.
func (p *Progress) HasUnfinished() bool {
	for _, state := range p.states {
		if state.active && !state.Finished() && state.aside == nil {
			return true
		}
	}
	return false
}

// TakesPart reports whether the handler takes part in the cycle.
func (p *Progress) TakesPart(id string) bool { return p.states[id] != nil && p.states[id].active }
