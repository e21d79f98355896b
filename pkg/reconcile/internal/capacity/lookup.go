package capacity

import (
	"fmt"

	"github.com/kopf-go/kopf/pkg/model/object"
)

// Lookup reports whether the handler is running for the object, and otherwise names the limit
// that it waits for, if it does. It is for messages: it looks at all running calls.
func (s *Slots) Lookup(key object.Key, id string) (isRunning bool, limit string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for e := s.running.Front(); e != nil; e = e.Next() {
		call := e.Value.(*Running).Call //nolint:errcheck // there is nothing else in it
		if call.Key == key && call.ID == id {
			return true, ""
		}
	}
	t := s.find(key, id)
	switch {
	case t == nil || t.state != waiting:
		return false, ""
	case t.call.Limit > 0 && s.used.byPool[t.call.Pool] >= t.call.Limit:
		return false, fmt.Sprintf("kopf.Limit(%d)", t.call.Limit)
	default:
		return false, fmt.Sprintf("Settings.Execution.MaxCalls (%d)", s.total)
	}
}
