package health

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/healthz"

	"github.com/kopf-go/kopf/pkg/metrics"
	"github.com/kopf-go/kopf/pkg/reconcile"
)

// fake is an operator in any state.
type fake struct {
	watching []reconcile.Watching
	state    metrics.State
}

var _ Operator = (*reconcile.Engine)(nil)

func (f *fake) Watching() []reconcile.Watching { return f.watching }
func (f *fake) State() metrics.State           { return f.state }

const kex = "kopfexamples.v1.kopf.dev"

// working is an operator that is well, but for what is changed in it.
func working(change func(f *fake)) *fake {
	f := &fake{
		watching: []reconcile.Watching{{Resource: kex, Namespace: "ns", Listed: true}, {Resource: "pods.v1", Listed: true}},
		state:    metrics.State{Ready: true, Leading: true, Queue: metrics.Queue{Workers: 100}},
	}
	change(f)
	return f
}

func TestReadiness(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "kopfexamples"}, "", errors.New(secret))
	tests := map[string]struct {
		change func(f *fake)
		lines  []string // the others are well
	}{
		"all is well":                       {func(*fake) {}, nil},
		"the objects are being listed":      {func(f *fake) { f.watching[0].Listed = false }, []string{"[-]" + kex + " in ns not listed yet"}},
		"the objects cannot be listed":      {func(f *fake) { f.watching[0].Listed, f.watching[0].Err = false, forbidden }, []string{"[-]" + kex + " in ns not listed yet: the operator is not permitted to list and watch it"}},
		"a watch is dead":                   {func(f *fake) { f.watching[1].Err = errors.New(secret) }, []string{"[-]pods.v1 not watched now: the log tells why"}},
		"it has just been started":          {func(f *fake) { f.watching, f.state = nil, metrics.State{Leading: true} }, []string{"[-]start not all objects are known that were there at the beginning"}},
		"objects wait, but not for long":    {func(f *fake) { f.state.Queue.Oldest = time.Minute }, nil},
		"objects wait for long":             {func(f *fake) { f.state.Queue = metrics.Queue{Depth: 3, Oldest: 90 * time.Second, Busy: 5, Workers: 5} }, []string{"[-]queue stands still: 3 objects wait, the first of them for 1m30s; 5 of 5 workers are busy"}},
		"another replica is the leader":     {func(f *fake) { f.state.Leading = false }, []string{"[+]handling ok: this replica stands by"}},
		"another operator has the objects":  {func(f *fake) { f.state.Paused = true }, []string{"[+]handling ok: paused, for another operator handles the objects"}},
		"a standby whose watch is dead too": {func(f *fake) { f.state.Leading, f.watching[1].Err = false, errors.New(secret) }, []string{"[-]pods.v1 not watched now: the log tells why", "[+]handling ok: this replica stands by"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			o := working(test.change)
			s := newTestServer(nil)
			s.options.Operator, s.options.Settings.MaxQueueAge = o, time.Minute
			status, body := request(s, "/readyz")
			checkLines(t, body, test.lines)
			ready := !strings.Contains(body, "[-]")
			if ready != (status == http.StatusOK) || !ready && status != http.StatusServiceUnavailable || ready == strings.HasSuffix(body, "not ready\n") {
				t.Errorf("got %d %s", status, body)
			}
			var check healthz.Checker = ReadyCheck(o, time.Minute)
			if err := check(nil); (err == nil) != ready || err != nil && strings.Contains(err.Error(), secret) {
				t.Errorf("the check: %v", err)
			}
		})
	}
}

// checkLines expects these lines, and of all others that they are well.
func checkLines(t *testing.T, body string, want []string) {
	t.Helper()
	for _, line := range want {
		if !strings.Contains(body, line+"\n") {
			t.Errorf("%q is missing in:\n%s", line, body)
		}
	}
	if bad := strings.Count(body, "[-]"); bad != strings.Count(strings.Join(want, ""), "[-]") || strings.Contains(body, secret) {
		t.Errorf("%d lines are bad in:\n%s", bad, body)
	}
}

func TestErrorsAreExplainedInOurOwnWords(t *testing.T) {
	kind := schema.GroupResource{Resource: "kopfexamples"}
	tests := map[string]struct {
		err  error
		want string
	}{
		"no permission":        {apierrors.NewForbidden(kind, "", errors.New(secret)), "not permitted"},
		"wrong credentials":    {apierrors.NewUnauthorized(secret), "credentials"},
		"no such resource":     {apierrors.NewNotFound(kind, secret), "does not have it"},
		"too many requests":    {apierrors.NewTooManyRequests(secret, 1), "overloaded"},
		"nobody listens":       {fmt.Errorf("%s: %w", secret, &net.OpError{Op: "dial", Err: errors.New("refused")}), "cannot be reached"},
		"no answer comes":      {context.DeadlineExceeded, "cannot be reached"},
		"anything else at all": {errors.New(secret), "the log"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := describeError(test.err); !strings.Contains(got, test.want) || strings.Contains(got, secret) {
				t.Errorf("got %q", got)
			}
		})
	}
}
