package reconcile

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/kopf-go/kopf/pkg/reconcile/tilingtest"
)

// The object is changed and suspended while the first write of a pass is on its way. The pass
// continues with that version after the conflict, and must not call handlers for it.
func TestSuspensionDuringAPass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &life{t: t, rand: rand.New(rand.NewPCG(1, 0)), ledger: tilingtest.New(), settling: true, server: &oneObject{object: m{
			"apiVersion": "kopf.dev/v1", "kind": "KopfExample",
			"metadata": m{"name": "a", "namespace": "ns", "uid": "u-1", "resourceVersion": "1"}, "spec": m{"a": 0},
		}, version: 1, committed: func() {}}}
		l.start(false)
		l.server.before = func() error {
			l.server.change(m{"spec": m{"a": 5}, "metadata": m{"annotations": m{kopfPrefix + "request-suspend": "forever"}}})
			return nil
		}
		l.pass()
		if !slices.ContainsFunc(l.log, callsFor("0")) || slices.ContainsFunc(l.log, callsFor("5")) {
			t.Errorf("handlers are called for the suspended version, or for none:\n%s", strings.Join(l.log, "\n"))
		}
		l.server.change(m{"metadata": m{"annotations": m{kopfPrefix + "request-suspend": nil}}})
		l.pass()
		if !slices.ContainsFunc(l.log, callsFor("5")) {
			t.Errorf("handlers are not called afterwards:\n%s", strings.Join(l.log, "\n"))
		}
	})
}

// callsFor returns a condition for the lines about calls of the handler of spec.a.
func callsFor(state string) func(string) bool {
	return func(line string) bool {
		return strings.Contains(line, "field_a/spec.a: ") && strings.Contains(line, "→ "+state+",")
	}
}
