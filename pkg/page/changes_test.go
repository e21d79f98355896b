package page

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// A page is loaded after each message, so many changes at once are one message.
func TestMessagesAboutChangesAreFew(t *testing.T) {
	for name, test := range map[string]struct {
		address string
		changes int // in the first 20 seconds, one in 100 milliseconds
		want    int // messages in a minute
		alive   int
	}{
		"nothing changes":                 {"/changes", 0, 0, 4},
		"much changes":                    {"/changes", 200, 21, 4},
		"nothing changes, but facts may":  {"/changes?facts", 0, 6, 4},
		"another resource changes":        {"/changes?resource=others", 200, 0, 4},
		"an object of the resource does":  {"/changes?resource=things", 1, 1, 4},
		"the object changes":              {"/changes?resource=things&namespace=default&name=one", 1, 1, 4},
		"another object changes":          {"/changes?resource=things&namespace=default&name=two", 1, 0, 4},
		"an object of another one's name": {"/changes?resource=things&namespace=other&name=one", 1, 0, 4},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &Page{audience: newAudience((&watched{}).watch)}
				defer p.audience.close()
				ctx, leave := context.WithTimeout(t.Context(), time.Minute+50*time.Millisecond)
				defer leave()
				go func() {
					for range test.changes {
						time.Sleep(100 * time.Millisecond)
						p.audience.tell("things", types.NamespacedName{Namespace: "default", Name: "one"}, true)
					}
				}()
				answer := httptest.NewRecorder()
				p.streamChanges(answer, httptest.NewRequestWithContext(ctx, http.MethodGet, test.address, http.NoBody))
				text := answer.Body.String()
				if got := strings.Count(text, changeMessage); got != test.want {
					t.Errorf("got %d messages, want %d", got, test.want)
				}
				if got := strings.Count(text, ": alive"); got > test.alive || got < test.alive-1 {
					t.Errorf("got %d signs of life", got)
				}
				if len(p.audience.viewers) > 0 {
					t.Error("the viewer is still there")
				}
			})
		})
	}
}

func TestAStreamEndsWithThePage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &Page{audience: newAudience((&watched{}).watch)}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			p.streamChanges(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/changes", http.NoBody))
		}()
		synctest.Wait()
		p.Close()
		<-ended
	})
}
