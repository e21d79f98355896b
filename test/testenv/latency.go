package testenv

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"time"

	"k8s.io/client-go/rest"
)

// Latency is the environment variable with the longest delay of a request, such as 300ms.
// Requests with a configuration of Config and the events of their watches are late by a random
// part of it; those of Client are not. A test that edits an object before its operator has seen it
// fails soon this way, and not once a month on a busy machine.
const Latency = "TEST_LATENCY"

// delay makes the clients of a configuration slow if the environment says so.
func delay(config *rest.Config) error {
	value := os.Getenv(Latency)
	if value == "" {
		return nil
	}
	longest, err := time.ParseDuration(value)
	if err != nil || longest <= 0 {
		return fmt.Errorf("%s is not a positive duration: %q", Latency, value)
	}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return RoundTripper(func(sent *http.Request) (*http.Response, error) {
			late(sent, longest)
			answer, err := next.RoundTrip(sent)
			late(sent, longest)
			if err == nil && sent.URL.Query().Get("watch") != "" {
				answer.Body = &lateBody{ReadCloser: answer.Body, sent: sent, longest: longest}
			}
			return answer, err
		})
	})
	return nil
}

// late waits for a random time, or for the end of the request.
func late(sent *http.Request, longest time.Duration) {
	select {
	case <-time.After(rand.N(longest)): //nolint:gosec // any time will do
	case <-sent.Context().Done():
	}
}

// lateBody delivers the events of a watch late. A burst of them is late only once.
type lateBody struct {
	io.ReadCloser
	sent    *http.Request
	longest time.Duration
	last    time.Time
}

// Read waits for content, and then for a random time.
func (b *lateBody) Read(into []byte) (int, error) {
	n, err := b.ReadCloser.Read(into)
	if time.Since(b.last) > b.longest {
		late(b.sent, b.longest)
	}
	b.last = time.Now()
	return n, err
}
