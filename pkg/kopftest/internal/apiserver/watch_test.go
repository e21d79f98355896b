package apiserver_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kopf-go/kopf/pkg/kopftest/internal/apiserver"
)

// client is one of a watch. It changes something as soon as it knows that it watches, and leaves with the first event.
type client struct {
	*httptest.ResponseRecorder

	begin sync.Once
	act   func()
	leave context.CancelFunc
}

// Flush is called for the header, and for each event.
func (c *client) Flush() {
	c.begin.Do(c.act)
	if c.Body.Len() > 0 {
		c.leave()
	}
}

// A client that knows that it watches misses nothing that happens from then on.
func TestAWatchBeginsBeforeItsAnswer(t *testing.T) {
	server, err := apiserver.New(apiserver.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, leave := context.WithTimeout(t.Context(), time.Minute) // a watch without an event ends only then
	defer leave()
	watching := &client{ResponseRecorder: httptest.NewRecorder(), leave: leave, act: func() {
		created := httptest.NewRecorder()
		object := `{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "new"}}`
		request := httptest.NewRequest(http.MethodPost, "/api/v1/namespaces", strings.NewReader(object))
		request.Header.Set("Content-Type", "application/json")
		server.ServeHTTP(created, request)
		if created.Code != http.StatusCreated {
			t.Errorf("got %d %s", created.Code, created.Body)
			leave()
		}
	}}
	query := "/api/v1/namespaces?watch=true&sendInitialEvents=false&resourceVersionMatch=NotOlderThan"
	server.ServeHTTP(watching, httptest.NewRequest(http.MethodGet, query, nil).WithContext(ctx))
	if text := watching.Body.String(); !strings.Contains(text, `"type":"ADDED"`) || !strings.Contains(text, `"name":"new"`) {
		t.Errorf("got the events %q", text)
	}
}
