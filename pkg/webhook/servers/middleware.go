package servers

import (
	"context"
	"net/http"
	"strings"
	"time"
)

// writeGracePeriod is the time to send an answer that says that the time is over.
const writeGracePeriod = 5 * time.Second

// withDeadlines limits the time of requests. The end of the server does not cancel a
// request, because the server waits for it; the end of the client does.
func (s Server) withDeadlines(serving context.Context, handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		deadline := time.Now().Add(s.Timeout)
		ctx, cancel := context.WithDeadline(context.WithoutCancel(r.Context()), deadline)
		defer cancel()
		defer context.AfterFunc(r.Context(), func() {
			if serving.Err() == nil {
				cancel()
			}
		})()
		// The recorder of a test has no deadlines and needs none.
		control := http.NewResponseController(w)
		_ = control.SetReadDeadline(deadline)
		_ = control.SetWriteDeadline(deadline.Add(writeGracePeriod))
		handler.ServeHTTP(w, r.WithContext(ctx))
	})
}

// stripPath removes the path of the server from requests.
func stripPath(path string, handler http.Handler) http.Handler {
	return http.StripPrefix(strings.TrimRight(withLeadingSlash(path), "/"), handler)
}

// withLeadingSlash returns the path with a slash before it, or no path.
func withLeadingSlash(path string) string {
	if path == "" || strings.HasPrefix(path, "/") {
		return path
	}
	return "/" + path
}
