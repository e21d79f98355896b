package webhook_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// BenchmarkReview measures a review without its transport; see also `go run ./test/bench -admission`.
func BenchmarkReview(b *testing.B) {
	h := &handlers{t: b}
	h.validate("a", admit)
	w := h.serve()
	body := encode(b, review(example(m{"text": strings.Repeat("x", 1024)})))
	b.ReportAllocs()
	for b.Loop() {
		recorder := httptest.NewRecorder()
		w.ServeHTTP(recorder, httptest.NewRequestWithContext(b.Context(), http.MethodPost, "/a?timeout=10s", strings.NewReader(body)))
		if recorder.Code != http.StatusOK {
			b.Fatal(recorder.Body)
		}
	}
}
