package serve_test

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kopf-go/kopf/pkg/serve/protocol"
)

// What startup handlers leave in the memory of a worker is there again before a new process handles an object.
func TestANewProcessStartsUpBeforeItHandles(t *testing.T) {
	const again = `[{"startup": true, "id": "open", "param": 5}, {"create": "kopfexamples", "id": "fn"}]`
	for name, test := range map[string]struct {
		second   string // answer of the second process to its first call of the startup handler
		handlers string
		order    []string
	}{
		"it succeeds":             {`{}`, again, []string{"open", "fn", "open", "fn"}},
		"it fails temporarily":    {`{"error": {"message": "not yet", "delay": 30}}`, again, []string{"open", "fn", "open", "open", "fn"}},
		"it fails, as it may not": {`{"error": {"message": "oops"}}`, again, []string{"open", "fn", "open", "open", "fn"}},
		"the process dies again":  {"", again, []string{"open", "fn", "open", "open", "fn"}},
		"it does not answer":      {"wait", again, []string{"open", "fn", "open", "open", "fn"}},
		"it fails, and errors do not matter": {
			`{"error": {"message": "oops"}}`, `[{"startup": true, "id": "open", "param": 5, "errors": "ignored"}, {"create": "kopfexamples", "id": "fn"}]`,
			[]string{"open", "fn", "open", "fn"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var b *bench
				asked := false
				b = newBench(t, oneWorker+"limits: {callTimeout: 60, stopTimeout: 1}\n", test.handlers, func(c *protocol.Call) string {
					switch {
					case c.Handler == "fn" && c.Retry == 0:
						return "" // the process dies
					case c.Handler == "open" && b != nil && b.begins == 2 && !asked:
						asked = true
						return test.second
					default:
						return `{}`
					}
				})
				b.Create(newExample(`{}`))
				b.Advance(10 * time.Minute)
				if order := b.order("open", "fn"); !slices.Equal(order, test.order) {
					t.Errorf("the order of the calls is %q, want %q", order, test.order)
				}
				if call := b.last("open"); call.Kind != protocol.Startup || fmt.Sprint(call.Param) != "5" || call.Started == nil {
					t.Errorf("got the call %+v", call)
				}
			})
		})
	}
}

// Other workers keep their memory, so their startup handlers are not called again.
func TestOnlyTheNewProcessStartsUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const file = `
kopf: v1
workers: {a: {command: [a]}, b: {command: [b]}}
handlers:
- {startup: true, id: of-a, worker: a}
- {startup: true, id: of-b, worker: b}
- {create: kopfexamples, id: fn, worker: a}
- {create: kopfexamples, id: other, worker: b}
`
		b := newBench(t, file, `[]`, func(c *protocol.Call) string {
			if c.Handler == "fn" && c.Retry == 0 {
				return "" // the process dies
			}
			return `{}`
		})
		b.Create(newExample(`{}`))
		b.Advance(time.Minute)
		want := []string{"of-a", "of-b", "fn", "of-a", "fn"}
		if order := b.order("of-a", "of-b", "fn"); !slices.Equal(order, want) || b.count("other") != 1 {
			t.Errorf("the order of the calls is %q, want %q; the other worker had %d calls", order, want, b.count("other"))
		}
	})
}

// A worker can let go of what it keeps for objects that are gone, also without handlers of deletions.
func TestAWorkerHearsOfTheEndOfItsObjects(t *testing.T) {
	for name, handlers := range map[string]string{
		"creations": `[{"create": "kopfexamples", "id": "fn"}]`,
		"deletions": `[{"delete": "kopfexamples", "id": "fn"}]`,
		"events":    `[{"event": "kopfexamples", "id": "fn"}]`,
		"timers":    `[{"timer": "kopfexamples", "id": "fn", "interval": 60}]`,
		"ensure":    `[{"ensure": "kopfexamples", "id": "fn"}]`,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, oneWorker+"settings: {name: test}\n", handlers, func(*protocol.Call) string { return `{}` })
				var uids []string
				for i := range 3 {
					object := newExample(`{}`)
					object.SetName(fmt.Sprint("object-", i))
					b.Create(object)
					b.Settle()
					if len(b.gone) != i {
						t.Errorf("%d objects are gone, want %d", len(b.gone), i)
					}
					uids = append(uids, string(object.GetUID()))
					b.Delete(object)
					b.Settle()
				}
				if !slices.Equal(b.gone, uids) {
					t.Errorf("gone are %q, want %q", b.gone, uids)
				}
			})
		})
	}
}

// The log lines of a worker become events as those of handlers in Go, with warnings as such.
func TestLogLinesBecomeEvents(t *testing.T) {
	const lines = `{"type": "log", "id": %[1]q, "level": "debug", "message": "one"}
{"type": "log", "id": %[1]q, "level": "info", "message": "two", "values": {"size": 5}}
{"type": "log", "id": %[1]q, "level": "warning", "message": "three"}
{"type": "log", "id": %[1]q, "level": "error", "message": "four"}
{"type": "log", "id": %[1]q, "level": "error", "message": "five", "logOnly": true}
{"type": "log", "level": "error", "message": "six"}
`
	for settings, want := range map[string][]string{
		"{}":                             {"Normal two size=5", "Warning three", "Error four"},
		"{posting: {level: debug}}":      {"Debug one", "Normal two size=5", "Warning three", "Error four"},
		"{posting: {level: warn}}":       {"Warning three", "Error four"},
		"{posting: {level: error}}":      {"Error four"},
		"{posting: {withoutLogs: true}}": nil,
		"{posting: {disabled: true}}":    nil,
	} {
		t.Run(settings, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, oneWorker+"settings: "+settings+"\n", `[{"create": "kopfexamples", "id": "fn"}]`, func(*protocol.Call) string { return `{}` })
				b.says = func(c *protocol.Call) string { return fmt.Sprintf(lines, c.ID) }
				b.Create(newExample(`{}`))
				b.Settle()
				var got []string
				for _, event := range b.Events() {
					if event.Reason == "Logging" {
						got = append(got, event.Type+" "+event.Message)
					}
				}
				if !slices.Equal(got, want) {
					t.Errorf("got %q, want %q", got, want)
				}
			})
		})
	}
}
