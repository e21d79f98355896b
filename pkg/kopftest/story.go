package kopftest

import (
	"fmt"
	"time"
)

// moment is something that has happened.
type moment struct {
	at   time.Time
	kind string
	what fmt.Stringer
}

// tell adds to what has happened. The caller holds the lock. Later, more can be known.
func (r *recording) tell(kind string, what fmt.Stringer) {
	r.story = append(r.story, moment{at: time.Now(), kind: kind, what: what})
}

// describe returns what has happened, in lines.
func (r *recording) describe() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	lines := make([]string, 0, len(r.story))
	for _, one := range r.story {
		lines = append(lines, fmt.Sprintf("%s %s %s", one.at.Format(time.TimeOnly), one.kind, one.what))
	}
	return lines
}
