package inprocess

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func get(ctx context.Context, t *testing.T, handler http.HandlerFunc) (*http.Response, error) {
	t.Helper()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://nowhere/a?b=c", strings.NewReader("question"))
	if err != nil {
		t.Fatal(err)
	}
	return (&http.Client{Transport: Transport{Handler: handler}}).Do(request)
}

func TestResponse(t *testing.T) {
	response, err := get(t.Context(), t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Answer", r.Host+r.RequestURI)
		w.WriteHeader(http.StatusTeapot)
		w.Header().Set("Late", "yes")
		_, _ = w.Write(append(body, '!'))
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil || string(body) != "question!" || response.StatusCode != http.StatusTeapot || response.ContentLength != 9 {
		t.Errorf("got %d %q, %v", response.StatusCode, body, err)
	}
	if response.Header.Get("Answer") != "nowhere/a?b=c" || response.Header.Get("Late") != "" {
		t.Errorf("got %v", response.Header)
	}
}

func TestPanicIsAnError(t *testing.T) {
	_, err := get(t.Context(), t, func(http.ResponseWriter, *http.Request) { panic("of the handler") }) //nolint:bodyclose // there is none
	if err == nil || !strings.Contains(err.Error(), "panicked: of the handler") {
		t.Errorf("got %v", err)
	}
}

// ticks streams a line per second.
func ticks(w http.ResponseWriter, r *http.Request) {
	w.(http.Flusher).Flush()
	for {
		select {
		case <-time.After(time.Second):
		case <-r.Context().Done():
			return
		}
		if _, err := io.WriteString(w, "tick\n"); err != nil {
			return
		}
	}
}

func TestStream(t *testing.T) {
	tests := map[string]func(response *http.Response, cancel context.CancelFunc){
		"the client closes the body":     func(response *http.Response, _ context.CancelFunc) { _ = response.Body.Close() },
		"the client cancels the request": func(_ *http.Response, cancel context.CancelFunc) { cancel() },
	}
	for name, end := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				response, err := get(ctx, t, ticks) //nolint:bodyclose // closing it is one of the cases
				if err != nil {
					t.Fatal(err)
				}
				began := time.Now()
				lines := bufio.NewReader(response.Body)
				for range 3 {
					if line, err := lines.ReadString('\n'); err != nil || line != "tick\n" {
						t.Errorf("got %q, %v", line, err)
					}
				}
				if time.Since(began) != 3*time.Second {
					t.Errorf("the lines took %v", time.Since(began))
				}
				end(response, cancel)
				if _, err := lines.ReadString('\n'); err == nil {
					t.Error("the stream goes on")
				}
			})
		})
	}
}

func TestCanceledBeforeTheResponse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := get(ctx, t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }) //nolint:bodyclose // there is none
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
	})
}

// The client can give up before the handler begins its response, which must not wait for it then.
func TestResponseThatBeginsTooLateEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		late := make(chan error)
		_, err := get(ctx, t, func(w http.ResponseWriter, r *http.Request) { //nolint:bodyclose // there is none
			<-r.Context().Done()
			synctest.Wait()
			w.(http.Flusher).Flush()
			_, err := w.Write([]byte("event"))
			late <- err
		})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		if err := <-late; !errors.Is(err, context.Canceled) {
			t.Errorf("the handler got %v", err)
		}
	})
}
