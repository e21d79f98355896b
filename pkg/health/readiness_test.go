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
	"github.com/kopf-go/kopf/pkg/shards"
)

// fake is an operator with a given state.
type fake struct {
	watching []reconcile.WatchStatus
	state    metrics.State
}

var _ Operator = (*reconcile.Engine)(nil)

func (f *fake) WatchStatuses() []reconcile.WatchStatus { return f.watching }
func (f *fake) State() metrics.State                   { return f.state }

const kex = "kopfexamples.v1.kopf.dev"

// newFake returns a ready operator with a change.
func newFake(change func(f *fake)) *fake {
	f := &fake{
		watching: []reconcile.WatchStatus{{Resource: kex, Namespace: "ns", Listed: true}, {Resource: "pods.v1", Listed: true}},
		state:    metrics.State{Ready: true, Leading: true, Queue: metrics.Queue{Workers: 100}},
	}
	change(f)
	return f
}

func TestReadiness(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "kopfexamples"}, "", errors.New(secret))
	tests := map[string]struct {
		change func(f *fake)
		lines  []string // all other checks pass
	}{
		"everything is ready":           {func(*fake) {}, nil},
		"objects are being listed":      {func(f *fake) { f.watching[0].Listed = false }, []string{"[-]" + kex + "/ns not listed yet"}},
		"objects cannot be listed":      {func(f *fake) { f.watching[0].Listed, f.watching[0].Err = false, forbidden }, []string{"[-]" + kex + "/ns not listed yet: the operator is not permitted to list and watch it"}},
		"a watch failed":                {func(f *fake) { f.watching[1].Err = errors.New(secret) }, []string{"[-]pods.v1 not watched now: see the log for the reason"}},
		"the operator has just started": {func(f *fake) { f.watching, f.state = nil, metrics.State{Leading: true} }, []string{"[-]start not all existing objects are listed yet"}},
		"objects wait for a short time": {func(f *fake) { f.state.Queue.Oldest = time.Minute }, nil},
		"objects wait for a long time":  {func(f *fake) { f.state.Queue = metrics.Queue{Depth: 3, Oldest: 90 * time.Second, Busy: 5, Workers: 5} }, []string{"[-]queue stalled: 3 objects are waiting, the oldest for 1m30s; 5 of 5 workers are busy"}},
		"another replica is the leader": {func(f *fake) { f.state.Leading = false }, []string{"[+]handling ok: this replica is on standby"}},
		"a replica with shards": {func(f *fake) {
			f.state.Shards = &metrics.Shards{Number: 16, Joined: true, Held: shards.SetOf(0, 1, 2, 7)}
		}, []string{"[+]shards ok: 4 shards of 16", "[+]handling ok: this replica handles the shards 0-2, 7"}},
		"a replica that gets no shards":         {func(f *fake) { f.state.Shards = &metrics.Shards{Number: 2, Joined: true} }, []string{"[+]shards ok: 0 shards of 2", "[+]handling ok: this replica handles no shards"}},
		"a leader works":                        {func(f *fake) { f.state.Shards = &metrics.Shards{Number: 2, Leader: secret} }, []string{"[+]shards ok: this replica waits until one with leader election has stopped", "[+]handling ok: this replica handles no shards"}},
		"leases cannot be written":              {func(f *fake) { f.state.Shards = &metrics.Shards{Number: 2} }, []string{"[-]shards this replica takes no part: it cannot read or write the leases of the shards, or has just started"}},
		"another operator pauses the shards":    {func(f *fake) { f.state.Paused, f.state.Shards = true, &metrics.Shards{Number: 2, Joined: true} }, []string{"[+]handling ok: paused: another operator handles the objects"}},
		"another operator pauses this one":      {func(f *fake) { f.state.Paused = true }, []string{"[+]handling ok: paused: another operator handles the objects"}},
		"a standby replica with a failed watch": {func(f *fake) { f.state.Leading, f.watching[1].Err = false, errors.New(secret) }, []string{"[-]pods.v1 not watched now: see the log for the reason", "[+]handling ok: this replica is on standby"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			o := newFake(test.change)
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
				t.Errorf("got the error %v from the check", err)
			}
		})
	}
}

// checkLines expects these lines, and that all other checks pass.
func checkLines(t *testing.T, body string, want []string) {
	t.Helper()
	for _, line := range want {
		if !strings.Contains(body, line+"\n") {
			t.Errorf("%q is not in:\n%s", line, body)
		}
	}
	if bad := strings.Count(body, "[-]"); bad != strings.Count(strings.Join(want, ""), "[-]") || strings.Contains(body, secret) {
		t.Errorf("%d checks failed in:\n%s", bad, body)
	}
}

func TestDescribeErrorQuotesNothing(t *testing.T) {
	kind := schema.GroupResource{Resource: "kopfexamples"}
	tests := map[string]struct {
		err  error
		want string
	}{
		"forbidden":          {apierrors.NewForbidden(kind, "", errors.New(secret)), "not permitted"},
		"unauthorized":       {apierrors.NewUnauthorized(secret), "credentials"},
		"not found":          {apierrors.NewNotFound(kind, secret), "does not serve it"},
		"too many requests":  {apierrors.NewTooManyRequests(secret, 1), "overloaded"},
		"connection refused": {fmt.Errorf("%s: %w", secret, &net.OpError{Op: "dial", Err: errors.New("refused")}), "cannot be reached"},
		"timeout":            {context.DeadlineExceeded, "cannot be reached"},
		"any other error":    {errors.New(secret), "see the log"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := describeError(test.err); !strings.Contains(got, test.want) || strings.Contains(got, secret) {
				t.Errorf("got %q", got)
			}
		})
	}
}

// list is the response of the endpoint for an operator with a stalled queue.
const list = `[+]` + kex + `/ns ok
[+]pods.v1 ok
[+]start ok
[-]queue stalled: 1 object is waiting, the oldest for 1h0m0s; 1 of 1 worker is busy
[+]handling ok
not ready
`

func TestReadinessChecksAsInTheAPIServer(t *testing.T) {
	tests := map[string]struct {
		path   string
		status int
		body   string
	}{
		"all checks":                {"/readyz", http.StatusServiceUnavailable, list},
		"all checks with verbose":   {"/readyz?verbose", http.StatusServiceUnavailable, list},
		"a check that passed":       {"/readyz/handling", http.StatusOK, "[+]handling ok\n"},
		"a check that failed":       {"/readyz/queue?verbose", http.StatusServiceUnavailable, "[-]queue stalled: 1 object is waiting, the oldest for 1h0m0s; 1 of 1 worker is busy\n"},
		"a watch":                   {"/readyz/pods.v1", http.StatusOK, "[+]pods.v1 ok\n"},
		"a watch in a namespace":    {"/readyz/" + kex + "/ns", http.StatusOK, "[+]" + kex + "/ns ok\n"},
		"an unknown check":          {"/readyz/nonsense", http.StatusNotFound, `there is no check "nonsense"; the checks are: ` + kex + "/ns, pods.v1, start, queue, handling\n"},
		"no check":                  {"/readyz/", http.StatusNotFound, `there is no check ""; the checks are: ` + kex + "/ns, pods.v1, start, queue, handling\n"},
		"an excluded check":         {"/readyz?exclude=queue", http.StatusOK, "[+]" + kex + "/ns ok\n[+]pods.v1 ok\n[+]start ok\n[+]queue excluded: ok\n[+]handling ok\nready\n"},
		"several excluded checks":   {"/readyz?exclude=queue&exclude=pods.v1&verbose", http.StatusOK, "[+]" + kex + "/ns ok\n[+]pods.v1 excluded: ok\n[+]start ok\n[+]queue excluded: ok\n[+]handling ok\nready\n"},
		"an unknown excluded one":   {"/readyz?exclude=nonsense", http.StatusServiceUnavailable, strings.Replace(list, "not ready", "warn: some health checks cannot be excluded: no matches for [\"nonsense\"]\nnot ready", 1)},
		"a path with only a prefix": {"/readyzz", http.StatusNotFound, "not found; the endpoints are /healthz and /readyz\n"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := newTestServer(nil)
			s.options.Operator = newFake(func(f *fake) { f.state.Queue = metrics.Queue{Depth: 1, Oldest: time.Hour, Busy: 1, Workers: 1} })
			if status, body := request(s, test.path); status != test.status || body != test.body {
				t.Errorf("got %d %s", status, body)
			}
		})
	}
}

func TestReadinessChecksBelowTheRoot(t *testing.T) {
	s := newTestServer(nil)
	s.options.Settings.ReadinessPath, s.options.Operator = "/", newFake(func(*fake) {})
	for path, want := range map[string]string{"/": "ready\n", "/queue": "[+]queue ok\n", "/healthz": "{}\n"} {
		if status, body := request(s, path); status != http.StatusOK || !strings.HasSuffix(body, want) {
			t.Errorf("%s: got %d %s", path, status, body)
		}
	}
}
