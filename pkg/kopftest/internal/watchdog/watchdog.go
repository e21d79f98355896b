// Package watchdog notices that virtual time stands still: a goroutine in a bubble of
// testing/synctest waits for something outside of it, such as a network connection.
package watchdog

import (
	"fmt"
	"io"
	"os"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"time"
)

// limit is the number of ticks after which a wait is reported.
const limit = 10

// tick is in real time.
const tick = time.Second

// Watchdog looks at waits in real time. It is safe for concurrent use, also in bubbles.
type Watchdog struct {
	mu    sync.Mutex
	waits map[*wait]struct{}
}

type wait struct {
	bubble   string
	ticks    int
	reported bool
}

// Default runs in the process. Everything that is started in a bubble has virtual time, so it
// must be started before.
//
//nolint:gochecknoglobals // see above
var Default = Start(time.NewTicker(tick).C, os.Stderr)

// Start returns a watchdog that looks at every tick, and writes what it finds.
func Start(ticks <-chan time.Time, to io.Writer) *Watchdog {
	w := &Watchdog{waits: map[*wait]struct{}{}}
	go func() {
		for range ticks {
			w.look(to)
		}
	}()
	return w
}

var bubble = regexp.MustCompile(`synctest bubble \d+`)

// Begin says that the calling goroutine begins to wait for its bubble. The returned function
// says that this has ended.
func (w *Watchdog) Begin() (end func()) {
	header := make([]byte, 100)
	header = header[:runtime.Stack(header, false)]
	one := &wait{bubble: bubble.FindString(string(header))}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waits[one] = struct{}{}
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.waits, one)
	}
}

// look counts the ticks of all waits, and reports those that are too long, once.
func (w *Watchdog) look(to io.Writer) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for one := range w.waits {
		one.ticks++
		if one.ticks >= limit && !one.reported {
			if stacks := blockers(one.bubble); len(stacks) > 0 {
				one.reported = true
				_, _ = fmt.Fprintf(to, message, limit*tick, strings.Join(stacks, "\n\n")) // there is no other place to tell it
			}
		}
	}
}

const message = `kopftest: Virtual time has stood still for %v, because a goroutine waits for something outside of the test:
a network connection, a process, a file, or a lock that another goroutine holds while it sleeps.
Give the handler a client that answers in memory, such as an http.RoundTripper; or test it in real time with
kopftest.Run. This is the goroutine:

%s

`

// blockers returns the stacks of the goroutines in a bubble that neither run nor wait for
// something in the bubble.
func blockers(of string) []string {
	all := make([]byte, 4<<20)
	all = all[:runtime.Stack(all, true)]
	var found []string
	for stack := range strings.SplitSeq(string(all), "\n\n") {
		header, _, _ := strings.Cut(stack, "\n")
		if bubble.FindString(header) == of && of != "" && isBlocked(header) {
			found = append(found, stack)
		}
	}
	return found
}

// isBlocked reports whether a goroutine is neither runnable nor durably blocked, by the first
// line of its stack.
func isBlocked(header string) bool {
	for _, state := range []string{"(durable)", "[running", "[runnable", "[synctest", "[sleep"} {
		if strings.Contains(header, state) {
			return false
		}
	}
	return true
}
