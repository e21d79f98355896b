package function

import (
	"strings"
	"testing"
)

const (
	top = "goroutine 7 [running]:\nruntime/debug.Stack()\n\t/go/debug/stack.go:26 +0x5e\n" +
		"github.com/kopf-go/kopf/internal/handler.recoverPanic(0xc0)\n\t/kopf/internal/handler/declaration.go:176 +0x1\n" +
		"panic({0x4ae580?, 0x57e2a0?})\n\t/go/runtime/panic.go:860 +0x13a\n"
	sigpanic = "runtime.sigpanic()\n\t/go/runtime/signal.go:900 +0x1\n"
	helper   = "main.measure(...)\n\t/app/main.go:12 +0x3\n"
	user     = "main.create({0x1, 0x2}, 0xc0)\n\t/app/main.go:20 +0x28\n"
	library  = "github.com/kopf-go/kopf/pkg/hierarchy.Adopt(0x0)\n\t/kopf/pkg/hierarchy/adopt.go:7 +0x1\n"
	wrapper  = "github.com/kopf-go/kopf/pkg/kopf.Typed[...].Daemon.func1(0xc0)\n\t/kopf/pkg/kopf/background.go:90 +0x1\n"
	call     = "github.com/kopf-go/kopf/internal/handler.(*Declaration).CallDaemon(0xc0)\n\t/kopf/internal/handler/declaration.go:140 +0x1\n"
	below    = "github.com/kopf-go/kopf/pkg/reconcile/daemons.(*run).call(0xc0)\n\t/kopf/pkg/reconcile/daemons/run.go:90 +0x1\n" +
		"created by time.goFunc\n\t/go/time/sleep.go:215 +0x2d\n"
)

func TestStacksShowOnlyTheCodeOfTheDeveloper(t *testing.T) {
	tests := map[string]struct{ stack, want string }{
		"a handler":                        {top + user + call + below, user},
		"a function that a handler calls":  {top + helper + user + call + below, helper + user},
		"an error of the runtime":          {top + sigpanic + user + call + below, user},
		"a typed handler":                  {top + user + wrapper + call + below, user},
		"the library, called by a handler": {top + library + user + wrapper + call + below, library + user},
		"the library alone":                {top + wrapper + call + below, wrapper},
		"the call itself":                  {top + call + below, top + call + below},
		"no panic":                         {"goroutine 7 [running]:\n" + user + call, "goroutine 7 [running]:\n" + user + call},
		"no call":                          {top + user + below, top + user + below},
		"something else":                   {"main.go:7", "main.go:7"},
		"nothing":                          {"", ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := string(TrimStack([]byte(test.stack))); strings.TrimSpace(got) != strings.TrimSpace(test.want) {
				t.Errorf("got\n%s\nwant\n%s", got, test.want)
			}
		})
	}
}
