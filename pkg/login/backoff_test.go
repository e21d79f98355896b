package login

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// outage sends a request every tenth of a second, and expects that all fail as
// unauthorized.
func (o *operator) outage(t *testing.T, g *gomega.WithT, length time.Duration) {
	t.Helper()
	for end := time.Now().Add(length); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		_, err := o.get(t.Context(), "/")
		g.Expect(apierrors.IsUnauthorized(err)).To(gomega.BeTrue(), "%v", err)
	}
}

func TestRejectedCredentialsAreNotUsedForAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, s := gomega.NewWithT(t), newServer("same")
		o := start(t, one(s.grant("same")))
		o.served(g, "/")
		s.accept()
		_, err := o.get(t.Context(), "/")
		g.Expect(apierrors.IsUnauthorized(err)).To(gomega.BeTrue())
		g.Expect(err).To(gomega.MatchError(gomega.ContainSubstring(`the login handler "handler" has returned credentials that the API server has already rejected (401)`)))
		g.Expect(o.Check()).To(gomega.MatchError(errors.Unwrap(err)))
		g.Expect(s.requests()).To(gomega.HaveLen(2))
		o.outage(t, g, 50*time.Second)
		g.Expect(s.requests()).To(gomega.HaveLen(2), "further requests are sent")
		g.Expect(o.handlers.logins()).To(gomega.BeNumerically("<=", 8))
	})
}

func TestUselessLoginsBecomeRare(t *testing.T) {
	fresh := make([]offer, 1000)
	s := newServer()
	for i := range fresh {
		fresh[i] = one(s.grant(fmt.Sprint("bad", i)))
	}
	tests := map[string][]offer{
		"the same credentials":            {one(s.grant("bad"))},
		"other credentials, all rejected": fresh,
		"no credentials after the first":  {one(s.grant("bad")), {}},
		"errors":                          {one(s.grant("bad")), {err: errors.New("no luck")}},
	}
	for name, offers := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := gomega.NewWithT(t)
				o := start(t, offers...)
				o.outage(t, g, time.Hour)
				g.Expect(o.handlers.logins()).To(gomega.And(gomega.BeNumerically(">", 50), gomega.BeNumerically("<", 70)))
				g.Expect(failures(o)).To(gomega.HaveLen(1), "the log says it once")
			})
		})
	}
}

func failures(o *operator) []string {
	var found []string
	for _, line := range o.logLines() {
		if strings.Contains(line, `"error"=`) {
			found = append(found, line)
		}
	}
	return found
}

func TestRejectedCredentialsAreTriedAgainLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, s := gomega.NewWithT(t), newServer("same")
		o := start(t, one(s.grant("same")))
		o.served(g, "/")
		s.accept()
		o.outage(t, g, time.Hour)
		s.accept("same")
		time.Sleep(2 * maxDelay)
		o.served(g, "/")
		g.Expect(o.Check()).To(gomega.Succeed())
		g.Expect(o.logLines()).To(gomega.ContainElement(gomega.ContainSubstring("logged in to the cluster again")))

		s.accept()
		before := o.handlers.logins()
		o.outage(t, g, 10*time.Second)
		g.Expect(o.handlers.logins()).To(gomega.Equal(before+4), "a success makes the delays short again")
		g.Expect(failures(o)).To(gomega.HaveLen(2))
	})
}

func TestTheNextLoginUsesNewCredentials(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, s := gomega.NewWithT(t), newServer("old")
		o := start(t, one(s.grant("old")), one(s.grant("old")), one(s.grant("new")))
		o.served(g, "/")
		s.accept("new")
		o.outage(t, g, time.Second)
		time.Sleep(time.Second)
		o.served(g, "/")
		g.Expect(o.handlers.logins()).To(gomega.Equal(3))
	})
}

func TestA401FromAnotherServerCausesNoLogin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, s := gomega.NewWithT(t), newServer("token")
		s.answer = func(request *http.Request) int {
			if request.URL.Path == "/apis/metrics" {
				return http.StatusUnauthorized
			}
			return http.StatusOK
		}
		o := start(t, one(s.grant("token")))
		status, err := o.get(t.Context(), "/apis/metrics")
		g.Expect(err).NotTo(gomega.HaveOccurred())
		g.Expect(status).To(gomega.Equal(http.StatusUnauthorized))
		o.served(g, "/")
		g.Expect(o.handlers.logins()).To(gomega.Equal(1))
	})
}

func TestCredentialsThatRenewThemselvesAreUsedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, s, first := gomega.NewWithT(t), newServer("token"), true
		s.answer = func(*http.Request) int {
			if first {
				first = false
				return http.StatusUnauthorized
			}
			return http.StatusOK
		}
		o := start(t, one(s.grant("token")))
		o.served(g, "/")
		g.Expect(o.handlers.logins()).To(gomega.Equal(1))
	})
}

func TestA401IsConfirmedByEveryResponseExceptSuccess(t *testing.T) {
	for _, status := range []int{http.StatusUnauthorized, http.StatusForbidden, http.StatusTooManyRequests, http.StatusBadGateway} {
		t.Run(http.StatusText(status), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g, s := gomega.NewWithT(t), newServer("old", "new")
				s.answer = func(request *http.Request) int {
					switch {
					case !strings.HasSuffix(request.Header.Get("Authorization"), "old") || request.URL.Path == "/good":
						return http.StatusOK
					case request.URL.Path == "/api":
						return status
					default:
						return http.StatusUnauthorized
					}
				}
				o := start(t, one(s.grant("old")), one(s.grant("new")))
				o.served(g, "/good")
				o.served(g, "/")
				g.Expect(o.handlers.logins()).To(gomega.Equal(2))
			})
		})
	}
}

func TestARequestWithItsOwnCredentialsIsNotVerified(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, s := gomega.NewWithT(t), newServer()
		o := start(t, one(s.grant("token")))
		send := func() int {
			request, err := http.NewRequest(http.MethodGet, o.Config().Host+"/", http.NoBody)
			g.Expect(err).NotTo(gomega.HaveOccurred())
			request.Header.Set("Authorization", "Bearer somebody")
			answer, err := o.client.Do(request)
			g.Expect(err).NotTo(gomega.HaveOccurred())
			g.Expect(answer.Body.Close()).To(gomega.Succeed())
			return answer.StatusCode
		}
		g.Expect(send()).To(gomega.Equal(http.StatusUnauthorized))
		g.Expect(s.requests()).To(gomega.Equal([]string{"GET / somebody"}))
		g.Expect(s.verifications).To(gomega.BeZero())
		s.accept("somebody")
		g.Expect(send()).To(gomega.Equal(http.StatusOK))
		o.outage(t, g, time.Second/2)
		g.Expect(o.handlers.logins()).To(gomega.Equal(1), "it is not a success of the login")
	})
}
