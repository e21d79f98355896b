package main

import (
	"net/http"
	"regexp"
	"strings"
	"sync"
)

// requests counts the requests of an operator to the API server.
type requests struct {
	Writes    int `json:"writes"`    // PATCH and PUT of the measured objects and their status
	Conflicts int `json:"conflicts"` // of these, rejected because of an old version
	Reads     int `json:"reads"`     // GET of one of the objects
	Events    int `json:"events"`    // POST and PATCH of Kubernetes events
	Children  int `json:"children"`  // writes of other objects in the namespace of the load
	Watches   int `json:"watches"`   // with those that are renewed every few minutes
	Discovery int `json:"discovery"` // of the resources that the API server has
	Others    int `json:"others"`
	Leases    int `json:"leases"`  // their renewals, and requests for them
	Refused   int `json:"refused"` // of all, with the status 429
}

// all returns the number of all requests, except those that do not depend on objects: a watch
// and a lease are renewed all the time, and discovery follows a change of the definitions.
func (r requests) all() int { return r.Writes + r.Reads + r.Events + r.Children + r.Others }

func (r requests) minus(other requests) requests {
	return requests{
		r.Writes - other.Writes, r.Conflicts - other.Conflicts, r.Reads - other.Reads,
		r.Events - other.Events, r.Children - other.Children, r.Watches - other.Watches,
		r.Discovery - other.Discovery, r.Others - other.Others, r.Leases - other.Leases, r.Refused - other.Refused,
	}
}

func (r requests) plus(other requests) requests { return r.minus(requests{}.minus(other)) }

// withoutLeases returns the requests without those for leases, which an idle operator renews.
func (r requests) withoutLeases() requests {
	r.Leases = 0
	return r
}

// counter is a transport that counts requests. It stores nothing else, to keep its
// effect on the figures small.
type counter struct {
	next http.RoundTripper
	mu   sync.Mutex
	requests
}

func (c *counter) wrap(next http.RoundTripper) http.RoundTripper {
	c.next = next
	return c
}

// RoundTrip sends a request and counts it.
func (c *counter) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := c.next.RoundTrip(request)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil && response.StatusCode == http.StatusTooManyRequests {
		c.Refused++
	}
	write := request.Method == http.MethodPatch || request.Method == http.MethodPut
	switch path := request.URL.Path; {
	case write && strings.Contains(path, "/"+resource+"/"):
		c.Writes++
		if err == nil && response.StatusCode == http.StatusConflict {
			c.Conflicts++
		}
	case strings.Contains(path, "/"+resource+"/"):
		c.Reads++
	case strings.HasSuffix(path, "/events") || strings.Contains(path, "/events/"):
		c.Events++
	case strings.Contains(path, "/leases"):
		c.Leases++
	case request.Method != http.MethodGet && strings.Contains(path, "/namespaces/"+namespace+"/"):
		c.Children++
	case request.URL.Query().Get("watch") == "true":
		c.Watches++
	case isDiscovery.MatchString(path):
		c.Discovery++
	default:
		c.Others++
	}
	return response, err
}

var isDiscovery = regexp.MustCompile(`^/(api(/v1)?|apis(/[^/]+(/[^/]+)?)?)$`)

func (c *counter) snapshot() requests {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.requests
}
