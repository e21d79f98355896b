package faults

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"

	"k8s.io/client-go/features"
	featuretesting "k8s.io/client-go/features/testing"
)

// TestStaleLists restarts operators with an API server that lags behind, as the followers in a
// cluster of API servers can: a list of any version is from before the last write, and looks
// like a current one.
func TestStaleLists(t *testing.T) {
	only := chosenPlan(t)
	featuretesting.SetFeatureDuringTest(t, features.WatchListClient, false)
	t.Run("experiments", func(t *testing.T) {
		for _, name := range []string{"life", "results", "retries"} {
			if only.scenario != "" && name != only.scenario {
				continue
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				without := baseline(t, name)
				for k := range without.requests {
					for _, fault := range []string{"crash-stale", "relist"} {
						p := plan{name, k + 1, fault}
						if only.fault == "" || p == only {
							try(t, p, without)
						}
					}
				}
			})
		}
	})
}

// keepList saves the list of the objects before a write.
func (r *run) keepList(w *write) {
	asked := w.request.Clone(w.request.Context())
	asked.Method, asked.Body, asked.ContentLength = http.MethodGet, nil, 0
	asked.URL.Path, _, _ = strings.Cut(asked.URL.Path, "/"+r.object.GetName())
	asked.URL.RawQuery = ""
	asked.Header.Del("Content-Type")
	answer, err := w.next.RoundTrip(asked)
	if err == nil {
		defer func() { _ = answer.Body.Close() }()
		r.stale, err = io.ReadAll(answer.Body)
	}
	r.history.note("from now on, any list is as before #%d (%v)", w.number, err)
}

// list responds to a list request, with an outdated list if any version is accepted.
func (r *run) list(sent *http.Request, next http.RoundTripper) (*http.Response, error) {
	if sent.URL.Query().Get("resourceVersion") != "0" {
		return next.RoundTrip(sent)
	}
	r.history.note("a list of any version is asked for")
	if r.stale == nil {
		return next.RoundTrip(sent)
	}
	answer := failure(sent, http.StatusOK, "")
	answer.Body = io.NopCloser(bytes.NewReader(r.stale))
	return answer, nil
}
