package testenv

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"

	"k8s.io/client-go/rest"
)

// CountingTransport counts the requests of all clients of one configuration. It counts
// events and leases separately, because their number depends on the clock and not on
// the handlers. It is safe for concurrent use.
type CountingTransport struct {
	mu       sync.Mutex
	requests []Request
	underWay int
	resets   int
}

// Count adds a CountingTransport to the configuration. Call it before any client is
// created from the configuration.
func Count(config *rest.Config) *CountingTransport {
	counter := &CountingTransport{}
	config.Wrap(counter.Wrap)
	return counter
}

// Wrap returns a transport that counts requests and sends them through the given
// transport.
func (c *CountingTransport) Wrap(next http.RoundTripper) http.RoundTripper {
	return RoundTripper(func(sent *http.Request) (*http.Response, error) {
		request := newRequest(sent)
		began := c.begin(request)
		answer, err := next.RoundTrip(sent)
		if err == nil {
			request.Status = answer.StatusCode
		}
		c.end(request, began)
		return answer, err
	})
}

// begin counts a request that is under way, and returns the number of resets before it.
func (c *CountingTransport) begin(r Request) (resets int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !isApart(r) {
		c.underWay++
	}
	return c.resets
}

// end keeps a request that has ended, unless it was sent before the last reset: a test can see what
// a request has done before the client has the response.
func (c *CountingTransport) end(r Request, resets int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !isApart(r) {
		c.underWay--
	}
	if resets == c.resets {
		c.requests = append(c.requests, r)
	}
}

// activity returns the number of requests that are answered, and of those that are not yet,
// without events and leases.
func (c *CountingTransport) activity() (answered, underWay int) {
	answered = len(c.Requests())
	c.mu.Lock()
	defer c.mu.Unlock()
	return answered, c.underWay
}

// RoundTripper is a function that sends requests, as a transport.
type RoundTripper func(*http.Request) (*http.Response, error)

// RoundTrip calls the function.
func (f RoundTripper) RoundTrip(sent *http.Request) (*http.Response, error) { return f(sent) }

// Requests returns the requests that were sent since the last Reset, in the order of the responses,
// without events and leases.
func (c *CountingTransport) Requests() []Request {
	return slices.DeleteFunc(c.All(), isApart)
}

// Snapshot counts the requests since the last Reset, without events and leases.
func (c *CountingTransport) Snapshot() Snapshot { return count(c.Requests()) }

// Apart counts only the requests for events and leases.
func (c *CountingTransport) Apart() Snapshot {
	return count(slices.DeleteFunc(c.All(), func(r Request) bool { return !isApart(r) }))
}

// Reset forgets all requests, also those that are under way.
func (c *CountingTransport) Reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.requests = nil
	c.resets++
}

// String lists the requests, one per line, for the message of a failed test.
func (c *CountingTransport) String() string {
	var lines strings.Builder
	for _, request := range c.Requests() {
		fmt.Fprintln(&lines, request)
	}
	return lines.String()
}

// All returns the requests since the last Reset, with events and leases.
func (c *CountingTransport) All() []Request {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.requests)
}

func isApart(r Request) bool { return r.Resource == "events" || r.Resource == "leases" }

// Key is what requests are counted by. Target is a resource, or a resource and a
// subresource as in "kopfexamples/status".
type Key struct{ Method, Target string }

// Snapshot is the number of requests of each kind.
type Snapshot map[Key]int

func count(requests []Request) Snapshot {
	counts := Snapshot{}
	for _, request := range requests {
		target := request.Resource
		if request.Subresource != "" {
			target += "/" + request.Subresource
		}
		counts[Key{request.Method, target}]++
	}
	return counts
}

// Writes counts the PATCH and PUT requests for objects of the resource and for their
// subresources, which are the writes of handling an object.
func (s Snapshot) Writes(resource string) int {
	total := 0
	for key, number := range s {
		owner, _, _ := strings.Cut(key.Target, "/")
		if owner == resource && (key.Method == http.MethodPatch || key.Method == http.MethodPut) {
			total += number
		}
	}
	return total
}

// String lists the counts as "2 PATCH kopfexamples, 1 PATCH kopfexamples/status".
func (s Snapshot) String() string {
	var parts []string
	for key := range maps.Keys(s) {
		parts = append(parts, fmt.Sprintf("%d %s %s", s[key], key.Method, key.Target))
	}
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}
