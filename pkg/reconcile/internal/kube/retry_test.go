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

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/kopf-go/kopf/pkg/internal/window"
	"github.com/kopf-go/kopf/pkg/settings"
)

// reply is the response to one request, or its error.
type reply struct {
	code       int // 0 if there is no response
	retryAfter string
	body       string
	err        error
	stream     io.ReadCloser
}

// replies is a network without sockets, which works in a synctest bubble. It replies to
// one request after another, and repeats the last reply.
type replies struct {
	all  []reply
	sent []time.Duration // since the start
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
	response := &http.Response{
		StatusCode: now.code, Request: request, ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(now.body)),
	}
	if now.stream != nil {
		response.Body = now.stream
	}
	if now.retryAfter != "" {
		response.Header.Set("Retry-After", now.retryAfter)
	}
	return response, nil
}

// newClient returns a client that uses the network.
func newClient(t *testing.T, r *replies, s settings.Settings) *Client {
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

// Reads are repeated after all temporary failures. A write must not be executed twice:
// its second response would say nothing about the first execution.
func TestRetries(t *testing.T) {
	tests := map[string]struct {
		reply         reply
		reads, writes int
	}{
		"a success":                      {reply{code: 200, body: thing}, 1, 1},
		"too many requests":              {reply{code: 429}, 3, 3},
		"unavailable with Retry-After":   {reply{code: 503, retryAfter: "1"}, 3, 3},
		"unavailable":                    {reply{code: 503}, 3, 1},
		"a bad gateway":                  {reply{code: 502}, 3, 1},
		"a timeout":                      {reply{code: 504}, 3, 1},
		"a timeout with Retry-After":     {reply{code: 504, retryAfter: "1"}, 3, 1},
		"an error with Retry-After":      {reply{code: 500, retryAfter: "1"}, 3, 1},
		"an error":                       {reply{code: 500}, 1, 1},
		"a conflict":                     {reply{code: 409}, 1, 1},
		"not found":                      {reply{code: 404}, 1, 1},
		"a refused connection":           {reply{err: &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}}, 3, 3},
		"an unknown host":                {reply{err: dialing}, 3, 3},
		"a broken connection":            {reply{err: reading}, 3, 1},
		"a truncated response":           {reply{err: io.ErrUnexpectedEOF}, 3, 1},
		"another error":                  {reply{err: errors.New("a bad certificate")}, 1, 1},
		"a Retry-After that is too long": {reply{code: 429, retryAfter: "60"}, 1, 1},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				reads, writes := &replies{all: []reply{test.reply}}, &replies{all: []reply{test.reply}}
				_, readErr := newClient(t, reads, settings.Settings{}).Get(t.Context(), one)
				_, writeErr := newClient(t, writes, settings.Settings{}).Patch(t.Context(), one, "", []byte(`{}`))
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

func TestRetriesRespectBackoffAndRetryAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &replies{all: []reply{{code: 503}, {code: 429, retryAfter: "4"}, {code: 200, body: thing}}}
		if _, err := newClient(t, r, settings.Settings{}).Get(t.Context(), one); err != nil {
			t.Fatal(err)
		}
		first, second := r.sent[1], r.sent[2]-r.sent[1]
		if first < 500*time.Millisecond || first > 600*time.Millisecond || second != 4*time.Second {
			t.Errorf("got delays of %v and %v", first, second)
		}
	})
}

func TestRequestTimeoutAndEndOfTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := settings.Settings{Networking: settings.Networking{RequestTimeout: time.Second, ErrorBackoffs: []time.Duration{time.Hour}}}
		hanging := &replies{all: []reply{{}}}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := newClient(t, hanging, s).Get(ctx, one)
		if took := time.Since(hanging.from); err == nil || took != time.Second || len(hanging.sent) != 1 {
			t.Errorf("got %v after %v", err, took)
		}
		failing := &replies{all: []reply{{code: 503}}}
		if _, err := newClient(t, failing, s).Get(ctx, one); statusCode(err) != 503 || time.Since(failing.from) != 59*time.Second {
			t.Errorf("got %v after %v", err, time.Since(failing.from))
		}
	})
}

// A shutdown does not wait for reads. A write that it abandons could be committed or not.
func TestOnlyWritesOutlastTheirContext(t *testing.T) {
	tests := map[string]struct {
		request func(ctx context.Context, c *Client) error
		want    time.Duration
	}{
		"a read":    {func(ctx context.Context, c *Client) error { _, err := c.Get(ctx, one); return err }, time.Second},
		"a dry run": {func(ctx context.Context, c *Client) error { return c.DryRun(ctx, one, "", []byte(`{}`)) }, time.Second},
		"a list":    {func(ctx context.Context, c *Client) error { _, err := c.ListVersions(ctx, "ns", nil); return err }, time.Second},
		"a write":   {func(ctx context.Context, c *Client) error { _, err := c.Patch(ctx, one, "", []byte(`{}`)); return err }, settings.DefaultRequestTimeout},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				hanging := &replies{all: []reply{{}}}
				err := test.request(ctx, newClient(t, hanging, settings.Settings{}))
				if took := time.Since(hanging.from); err == nil || took != test.want {
					t.Errorf("got %v after %v", err, took)
				}
			})
		})
	}
}

// A write that waits for other requests ends with its context, unlike one that was sent. It was not
// executed, so it is repeated while the context permits.
func TestWritesThatWaitEndWithTheirContext(t *testing.T) {
	tests := map[string]struct {
		timeout  time.Duration
		backoffs []time.Duration
		want     time.Duration
	}{
		"the context ends":                       {5 * time.Second, nil, 5 * time.Second},
		"the context ends before the repetition": {settings.DefaultRequestTimeout + 10*time.Second, []time.Duration{time.Hour}, settings.DefaultRequestTimeout + 10*time.Second},
		"the request has no time left":           {time.Hour, []time.Duration{}, settings.DefaultRequestTimeout},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				hanging := &replies{all: []reply{{}}, from: time.Now()}
				full := &http.Client{Transport: window.New(1).Wrap(hanging)}
				s := settings.Settings{Networking: settings.Networking{ErrorBackoffs: test.backoffs}}
				client, err := New(&rest.Config{Host: "http://nowhere", QPS: -1}, full, kex, s.WithDefaults())
				if err != nil {
					t.Fatal(err)
				}
				occupied, leave := context.WithCancel(t.Context())
				defer leave()
				go func() {
					if response, err := full.Do(occupying(occupied)); err == nil {
						_ = response.Body.Close()
					}
				}()
				synctest.Wait()
				ctx, cancel := context.WithTimeout(t.Context(), test.timeout)
				defer cancel()
				_, err = client.Patch(ctx, one, "", []byte(`{}`))
				if took := time.Since(hanging.from); !errors.Is(err, window.ErrNotSent) || took != test.want || len(hanging.sent) != 1 {
					t.Errorf("got %v after %v, with %d requests", err, took, len(hanging.sent))
				}
			})
		})
	}
}

// occupying returns a request of another client, for the same resource.
func occupying(ctx context.Context) *http.Request {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://nowhere/apis/kopf.dev/v1/namespaces/ns/kopfexamples/other", http.NoBody)
	if err != nil {
		panic(err)
	}
	return request
}

// No request waits for ever for an API server that does not answer.
func TestEveryRequestHasADeadline(t *testing.T) {
	tests := map[string]func(ctx context.Context, c *Client) error{
		"a read":    func(ctx context.Context, c *Client) error { _, err := c.Get(ctx, one); return err },
		"a dry run": func(ctx context.Context, c *Client) error { return c.DryRun(ctx, one, "", []byte(`{}`)) },
		"a write":   func(ctx context.Context, c *Client) error { _, err := c.Patch(ctx, one, "", []byte(`{}`)); return err },
		"a page of a list": func(ctx context.Context, c *Client) error {
			_, err := c.listPage(ctx, "ns", nil, metav1.ListOptions{})
			return err
		},
		"a list of versions":   func(ctx context.Context, c *Client) error { _, err := c.ListVersions(ctx, "ns", nil); return err },
		"a question for a uid": func(ctx context.Context, c *Client) error { _, _, err := c.Find(ctx, one); return err },
		"the managed fields":   func(ctx context.Context, c *Client) error { _, err := c.ManagedFields(ctx, one); return err },
	}
	for name, request := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				hanging := &replies{all: []reply{{}}}
				err := request(t.Context(), newClient(t, hanging, settings.Settings{}))
				if took := time.Since(hanging.from); err == nil || took != settings.DefaultRequestTimeout {
					t.Errorf("got %v after %v", err, took)
				}
			})
		})
	}
}

func TestRetriesCanBeDisabled(t *testing.T) {
	r := &replies{all: []reply{{code: 503, retryAfter: "1"}}}
	s := settings.Settings{Networking: settings.Networking{ErrorBackoffs: []time.Duration{}}}
	if _, err := newClient(t, r, s).Get(t.Context(), one); err == nil || len(r.sent) != 1 {
		t.Errorf("got %v after %d requests", err, len(r.sent))
	}
}
