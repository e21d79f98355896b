package inspect

import (
	"fmt"
	"net/http"
	"path"
	"strings"

	"k8s.io/client-go/rest"
)

// ReadOnly returns a configuration for commands that only look: it refuses every request but
// those that read, and reviews of the permissions of the user.
func ReadOnly(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return readOnly{next} })
	return config
}

type readOnly struct{ next http.RoundTripper }

// RoundTrip sends a request that reads.
func (r readOnly) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Method != http.MethodGet && !isSelfReview(request) {
		return nil, fmt.Errorf("this command only reads: the request %s %s is refused", request.Method, request.URL.Path)
	}
	return r.next.RoundTrip(request)
}

// isSelfReview reports whether a request asks what the user may do, which creates nothing.
func isSelfReview(request *http.Request) bool {
	isReview := strings.HasPrefix(request.URL.Path, "/apis/authorization.k8s.io/") || strings.HasPrefix(request.URL.Path, "/apis/authentication.k8s.io/")
	return request.Method == http.MethodPost && isReview && strings.HasPrefix(path.Base(request.URL.Path), "selfsubject")
}
