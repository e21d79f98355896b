// Package leaks finds goroutines that outlive what has started them, in real time.
package leaks

import (
	"bytes"
	"context"
	"fmt"
	"runtime/pprof"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// label marks goroutines. They pass it on to those that they start.
const label = "kopftest-run"

// Family is a goroutine with all those that it and its descendants start.
type Family struct{ name string }

// Go calls a function in a new goroutine, which begins a family.
func Go(f func()) Family {
	family := Family{fmt.Sprintf("%p-%d", &f, serial.Add(1))}
	go pprof.Do(context.Background(), pprof.Labels(label, family.name), func(context.Context) { f() })
	return family
}

// serial makes the names unique in the process, as the labels are.
//
//nolint:gochecknoglobals // see above
var serial atomic.Int64

// kept are functions of goroutines that live as long as the process by intention: the
// connections that are kept for the next request.
var kept = []string{"net/http.(*persistConn)", "http2.(*ClientConn)", "net/http.(*http2", "net/http/internal/http2."}

// Remaining waits until the family has ended, at most for the duration, and returns what is
// left: equal goroutines together, with their stacks.
func (f Family) Remaining(patience time.Duration) []string {
	deadline := time.Now().Add(patience)
	for pause := time.Millisecond; ; pause *= 2 {
		left := f.members()
		if len(left) == 0 || time.Now().Add(pause).After(deadline) {
			return left
		}
		<-time.After(pause)
	}
}

func (f Family) members() []string {
	var text bytes.Buffer
	if err := pprof.Lookup("goroutine").WriteTo(&text, 1); err != nil {
		return []string{err.Error()}
	}
	var found []string
	for group := range strings.SplitSeq(text.String(), "\n\n") {
		if strings.Contains(group, fmt.Sprintf("%q:%q", label, f.name)) && !slices.ContainsFunc(kept, func(name string) bool { return strings.Contains(group, name) }) {
			found = append(found, group)
		}
	}
	return found
}
