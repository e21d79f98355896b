package login

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

func TestARejectedRequestIsRepeatedAfterANewLogin(t *testing.T) {
	bodies := map[string]func() io.Reader{
		"a body that can be copied":  func() io.Reader { return strings.NewReader("content") },
		"a body that must be held":   func() io.Reader { return io.MultiReader(strings.NewReader("con"), strings.NewReader("tent")) },
		"a body that can be closed":  func() io.Reader { return io.NopCloser(strings.NewReader("content")) },
		"a body that is hard to get": func() io.Reader { return iotest.OneByteReader(strings.NewReader("content")) },
	}
	for name, body := range bodies {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g, s := gomega.NewWithT(t), newServer("old")
				o := start(t, one(s.grant("old")), one(s.grant("new")))
				o.served(g, "/first")
				s.accept("new")
				status, err := o.do(t.Context(), http.MethodPatch, "/second", body())
				g.Expect(err).NotTo(gomega.HaveOccurred())
				g.Expect(status).To(gomega.Equal(http.StatusOK))
				o.served(g, "/third")
				g.Expect(s.requests()).To(gomega.Equal([]string{
					"GET /first old", "PATCH /second old content", "PATCH /second new content", "GET /third new",
				}))
				g.Expect(o.handlers.logins()).To(gomega.Equal(2))
				g.Expect(s.verifications).To(gomega.Equal(1))
			})
		})
	}
}

func TestConcurrentRequestsLogInOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, s := gomega.NewWithT(t), newServer("old")
		o := start(t, one(s.grant("old")), one(s.grant("new")))
		o.served(g, "/")
		s.accept("new")
		s.delay, o.handlers.delay = time.Second, time.Minute
		var group sync.WaitGroup
		for i := range 100 {
			group.Go(func() {
				time.Sleep(time.Duration(i) * time.Second) // before, during and after the login
				o.served(g, "/")
			})
		}
		group.Wait()
		g.Expect(o.handlers.logins()).To(gomega.Equal(2))
		g.Expect(s.verifications).To(gomega.BeNumerically("<=", 2))
	})
}

func TestIdleConnectionsAreClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, rejected, expired, last := gomega.NewWithT(t), newServer("token"), newServer("token"), newServer("token")
		second := expired.grant("token")
		second.Expires = time.Now().Add(time.Hour)
		o := start(t, one(rejected.grant("token")), one(second), one(last.grant("token")))
		o.served(g, "/")
		rejected.accept()
		o.served(g, "/")
		g.Expect(rejected.closed).To(gomega.Equal(1))
		time.Sleep(time.Hour)
		o.served(g, "/")
		g.Expect(expired.closed).To(gomega.Equal(1))
		o.client.CloseIdleConnections()
		g.Expect(last.closed).To(gomega.Equal(1))
		o.Close()
		g.Expect(last.closed).To(gomega.Equal(2))
	})
}

func TestAnExpiredConnectionIsNotUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, s := gomega.NewWithT(t), newServer("first", "second")
		first, second := s.grant("first"), s.grant("second")
		first.Expires = time.Now().Add(time.Hour)
		o := start(t, one(first), one(second))
		time.Sleep(time.Hour - expiryMargin - time.Second)
		o.served(g, "/before")
		time.Sleep(time.Second)
		o.served(g, "/after")
		time.Sleep(1000 * time.Hour)
		o.served(g, "/later")
		g.Expect(s.requests()).To(gomega.Equal([]string{"GET /before first", "GET /after second", "GET /later second"}))
		g.Expect(o.handlers.logins()).To(gomega.Equal(2))
	})
}

func TestOtherHandlersAreTriedInTheOrderOfPriorityBeforeANewLogin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, s := gomega.NewWithT(t), newServer("low")
		high, low, same := s.grant("high"), s.grant("low"), s.grant("same")
		high.Priority, low.Priority, same.Priority = 10, -10, 10
		o := start(t, offer{connections: map[string]*Connection{"a": low, "b": high, "c": same, "d": nil}})
		o.served(g, "/")
		o.served(g, "/")
		g.Expect(s.requests()).To(gomega.Equal([]string{"GET / high", "GET / same", "GET / low", "GET / low"}))
		g.Expect(o.handlers.logins()).To(gomega.Equal(1))
	})
}

func TestAnExpiredConnectionIsReplacedByAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, s := gomega.NewWithT(t), newServer("short", "long")
		short, long := s.grant("short"), s.grant("long")
		short.Priority, short.Expires = 1, time.Now().Add(time.Minute)
		o := start(t, offer{connections: map[string]*Connection{"a": short, "b": long}})
		o.served(g, "/")
		time.Sleep(time.Minute)
		o.served(g, "/")
		g.Expect(s.requests()).To(gomega.Equal([]string{"GET / short", "GET / long"}))
		g.Expect(o.handlers.logins()).To(gomega.Equal(1))
	})
}

func TestNewFailsWithoutAUsableConnection(t *testing.T) {
	s, cause := newServer("token"), errors.New("no luck")
	expired := s.grant("token")
	expired.Expires = time.Unix(1, 0)
	tests := map[string]struct {
		offer offer
		want  string
	}{
		"an error":                      {offer{err: cause}, "no luck"},
		"nothing at all":                {offer{}, "no login handler has returned a connection"},
		"handlers without a connection": {offer{connections: map[string]*Connection{"a": nil}}, "no login handler has returned a connection"},
		"no configuration":              {one(&Connection{}), `of the login handler "handler" cannot be used: Config is missing`},
		"an expired connection":         {one(expired), "it expired at 1970-01-01T00:00:01Z"},
		"a mistake and an error":        {offer{map[string]*Connection{"a": {}}, cause}, "Config is missing\nno luck"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := gomega.NewWithT(t)
			_, err := New(t.Context(), Options{Login: (&handlers{offers: []offer{test.offer}}).login})
			g.Expect(err).To(gomega.MatchError(gomega.ContainSubstring(test.want)))
			g.Expect(errors.As(err, new(*Error))).To(gomega.BeTrue())
			g.Expect(errors.Is(err, cause)).To(gomega.Equal(test.offer.err != nil))
		})
	}
}

func TestTheContextInterruptsTheFirstLogin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, h := gomega.NewWithT(t), &handlers{offers: []offer{{}}, delay: time.Hour}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := New(ctx, Options{Login: h.login})
		g.Expect(err).To(gomega.MatchError(context.DeadlineExceeded))
	})
}

func TestOneOfSeveralConnectionsIsEnough(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, s := gomega.NewWithT(t), newServer("good")
		o := start(t, offer{map[string]*Connection{"a": {}, "b": s.grant("good")}, errors.New("another handler has failed")})
		o.served(g, "/")
		g.Expect(o.logLines()).To(gomega.ContainElement(gomega.ContainSubstring("Config is missing")))
	})
}

func TestACanceledRequestDoesNotWaitForTheLogin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, s := gomega.NewWithT(t), newServer("old")
		o := start(t, one(s.grant("old")), one(s.grant("new")))
		o.served(g, "/")
		s.accept("new")
		o.handlers.delay = time.Hour
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := o.get(ctx, "/")
		g.Expect(err).To(gomega.MatchError(context.DeadlineExceeded))
		o.served(g, "/") // the earlier login completes
		g.Expect(o.handlers.logins()).To(gomega.Equal(2))
	})
}

func TestNothingIsSentAfterClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, s := gomega.NewWithT(t), newServer("old")
		o := start(t, one(s.grant("old")), one(s.grant("new")))
		o.served(g, "/")
		s.accept("new")
		o.handlers.delay = time.Hour
		waiting := make(chan error, 1)
		go func() {
			_, err := o.get(context.Background(), "/")
			waiting <- err
		}()
		synctest.Wait()
		o.Close()
		g.Expect(<-waiting).To(gomega.MatchError(errClosed))
		_, err := o.get(t.Context(), "/")
		g.Expect(err).To(gomega.MatchError(errClosed))
		g.Expect(apierrors.IsUnauthorized(err)).To(gomega.BeFalse())
		g.Expect(s.requests()).To(gomega.HaveLen(2))
	})
}
