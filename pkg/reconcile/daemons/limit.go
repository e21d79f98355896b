package daemons

import (
	"slices"

	"github.com/kopf-go/kopf/internal/handler"
)

// slot is the place of a worker in the limit of its handler's calls. A call has its slot until it
// returns, also if it is abandoned.
type slot uint8

const (
	noSlot  slot = iota
	inLine       // the worker is due, and waits for a slot
	hasSlot      // the worker runs, or is about to
)

// limitKey identifies the declarations that share a limit. Daemons and timers do not share
// one, because daemons would keep all of it.
type limitKey struct {
	kind handler.Kind
	id   string
}

// limitLine contains the slots of a limit that are taken, and the workers that wait for one,
// in the order in which they became due.
type limitLine struct {
	taken   int
	waiting []*worker
}

func (w *worker) limitKey() limitKey { return limitKey{w.handler.Kind, w.handler.ID} }

// takeSlot reports whether the handler can be called now. Otherwise, the worker waits in line,
// and its timer fires when it has a slot. The lock is held.
func (w *worker) takeSlot() bool {
	if w.handler.Limit == 0 || w.slot == hasSlot {
		return true
	}
	s := w.group.supervisor
	l := s.limits[w.limitKey()]
	if l == nil {
		l = &limitLine{}
		s.limits[w.limitKey()] = l
	}
	if l.taken < w.handler.Limit {
		l.taken++
		w.slot = hasSlot
		return true
	}
	if w.slot == noSlot {
		l.waiting = append(l.waiting, w)
		w.slot = inLine
	}
	return false
}

// returnSlot gives up the slot, or the place in the line. The lock is held.
func (w *worker) returnSlot() {
	before := w.slot
	if before == noSlot {
		return
	}
	w.slot = noSlot
	s := w.group.supervisor
	key := w.limitKey()
	l := s.limits[key]
	if before == inLine {
		l.waiting = slices.DeleteFunc(l.waiting, func(other *worker) bool { return other == w })
		return
	}
	l.taken--
	if len(l.waiting) > 0 && l.taken < l.waiting[0].handler.Limit {
		next := l.waiting[0]
		l.waiting = slices.Delete(l.waiting, 0, 1)
		l.taken++
		next.slot = hasSlot
		next.startTimer(next.due)
	} else if l.taken == 0 {
		delete(s.limits, key)
	}
}
