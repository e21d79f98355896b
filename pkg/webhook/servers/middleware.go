package servers

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// withDeadlines keeps requests from taking more than they may. They are not cut off by
// the end of the server, which waits for them, but by that of their client.
func (s Server) withDeadlines(serving context.Context, handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength > s.MaxBody {
			http.Error(w, fmt.Sprintf("an admission review may have %d bytes, this one has %d", s.MaxBody, r.ContentLength), http.StatusRequestEntityTooLarge)
			return
		}
		deadline := time.Now().Add(s.Timeout)
		ctx, cancel := context.WithDeadline(context.WithoutCancel(r.Context()), deadline)
		defer cancel()
		defer context.AfterFunc(r.Context(), func() {
			if serving.Err() == nil {
				cancel()
			}
		})()
		// A test's recorder has no deadlines, and needs none.
		control := http.NewResponseController(w)
		_ = control.SetReadDeadline(deadline)
		_ = control.SetWriteDeadline(deadline.Add(writeGracePeriod))
		r = r.WithContext(ctx)
		r.Body = http.MaxBytesReader(w, r.Body, s.MaxBody)
		handler.ServeHTTP(w, r)
	})
}

// writeGracePeriod is for an answer that says that the time is over.
const writeGracePeriod = 5 * time.Second

// stripPath cuts the path of the server off.
func stripPath(path string, handler http.Handler) http.Handler {
	return http.StripPrefix(strings.TrimRight(withLeadingSlash(path), "/"), handler)
}

// withLeadingSlash is the path with a slash before it, or no path.
func withLeadingSlash(path string) string {
	if path == "" || strings.HasPrefix(path, "/") {
		return path
	}
	return "/" + path
}
