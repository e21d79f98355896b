package kube

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/kopf-go/kopf/pkg/settings"
)

// reply is what becomes of one request.
type reply struct {
	code       int // 0: there is no answer
	retryAfter string
	body       string
	err        error
	stream     io.ReadCloser
}

// replies are what becomes of the requests, one after another; the last one repeats.
// It is a network without sockets, so that a test can step the time.
type replies struct {
	all  []reply
	sent []time.Duration // when, since the begin
	from time.Time
}

func (r *replies) RoundTrip(request *http.Request) (*http.Response, error) {
	now := r.all[min(len(r.sent), len(r.all)-1)]
	r.sent = append(r.sent, time.Since(r.from))
	if now.err != nil {
		return nil, now.err
	}
	if now.code == 0 {
		<-request.Context().Done()
		return nil, request.Context().Err()
	}
	answer := &http.Response{
		StatusCode: now.code, Request: request, ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(now.body)),
	}
	if now.stream != nil {
		answer.Body = now.stream
	}
	if now.retryAfter != "" {
		answer.Header.Set("Retry-After", now.retryAfter)
	}
	return answer, nil
}

// reach makes a client of a network.
func reach(t *testing.T, r *replies, s settings.Settings) *Client {
	t.Helper()
	r.from = time.Now()
	client, err := New(&rest.Config{Host: "http://nowhere", QPS: -1}, &http.Client{Transport: r}, kex, s.WithDefaults())
	if err != nil {
		t.Fatal(err)
	}
	return client
}

const thing = `{"metadata":{"name":"one"}}`

var (
	one     = types.NamespacedName{Namespace: "ns", Name: "one"}
	dialing = &net.OpError{Op: "dial", Err: errors.New("no such host")}
	reading = &net.OpError{Op: "read", Err: syscall.ECONNRESET}
)

// A read costs nothing but time. A write must not be executed twice: then its second
// answer would be about something else.
func TestWhatIsRepeated(t *testing.T) {
	tests := map[string]struct {
		reply         reply
		reads, writes int
	}{
		"a success":                            {reply{code: 200, body: thing}, 1, 1},
		"too many requests":                    {reply{code: 429}, 3, 3},
		"unavailable, and the time is known":   {reply{code: 503, retryAfter: "1"}, 3, 3},
		"unavailable":                          {reply{code: 503}, 3, 1},
		"a gateway without anybody behind it":  {reply{code: 502}, 3, 1},
		"a timeout":                            {reply{code: 504}, 3, 1},
		"a timeout after which to come again":  {reply{code: 504, retryAfter: "1"}, 3, 1},
		"an error after which to come again":   {reply{code: 500, retryAfter: "1"}, 3, 1},
		"an error":                             {reply{code: 500}, 1, 1},
		"a conflict":                           {reply{code: 409}, 1, 1},
		"not found":                            {reply{code: 404}, 1, 1},
		"a refused connection":                 {reply{err: &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}}, 3, 3},
		"a server that cannot be found":        {reply{err: dialing}, 3, 3},
		"a broken connection":                  {reply{err: reading}, 3, 1},
		"an answer that is cut":                {reply{err: io.ErrUnexpectedEOF}, 3, 1},
		"something else":                       {reply{err: errors.New("a bad certificate")}, 1, 1},
		"a server that wants too long a pause": {reply{code: 429, retryAfter: "60"}, 1, 1},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				reads, writes := &replies{all: []reply{test.reply}}, &replies{all: []reply{test.reply}}
				_, readErr := reach(t, reads, settings.Settings{}).Get(t.Context(), one)
				_, writeErr := reach(t, writes, settings.Settings{}).Patch(t.Context(), one, "", []byte(`{}`))
				if len(reads.sent) != test.reads || len(writes.sent) != test.writes {
					t.Errorf("got %d reads (%v), %d writes (%v)", len(reads.sent), readErr, len(writes.sent), writeErr)
				}
				if success := test.reply.code == 200; (readErr == nil) != success || (writeErr == nil) != success {
					t.Errorf("got %v and %v", readErr, writeErr)
				}
			})
		})
	}
}

func TestRepetitionsHealAndKeepTheirPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &replies{all: []reply{{code: 503}, {code: 429, retryAfter: "4"}, {code: 200, body: thing}}}
		if _, err := reach(t, r, settings.Settings{}).Get(t.Context(), one); err != nil {
			t.Fatal(err)
		}
		first, second := r.sent[1], r.sent[2]-r.sent[1]
		if first < 500*time.Millisecond || first > 600*time.Millisecond || second != 4*time.Second {
			t.Errorf("got pauses of %v and %v", first, second)
		}
	})
}

func TestEachAttemptHasItsTimeAndPausesEndWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := settings.Settings{Networking: settings.Networking{RequestTimeout: time.Second, ErrorBackoffs: []time.Duration{time.Hour}}}
		hanging := &replies{all: []reply{{}}}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := reach(t, hanging, s).Get(ctx, one)
		if took := time.Since(hanging.from); err == nil || took != time.Second || len(hanging.sent) != 1 {
			t.Errorf("got %v after %v", err, took)
		}
		failing := &replies{all: []reply{{code: 503}}}
		if _, err := reach(t, failing, s).Get(ctx, one); statusCode(err) != 503 || time.Since(failing.from) != 59*time.Second {
			t.Errorf("got %v after %v", err, time.Since(failing.from))
		}
	})
}

func TestRepetitionsCanBeDisabled(t *testing.T) {
	r := &replies{all: []reply{{code: 503, retryAfter: "1"}}}
	s := settings.Settings{Networking: settings.Networking{ErrorBackoffs: []time.Duration{}}}
	if _, err := reach(t, r, s).Get(t.Context(), one); err == nil || len(r.sent) != 1 {
		t.Errorf("got %v after %d requests", err, len(r.sent))
	}
}
