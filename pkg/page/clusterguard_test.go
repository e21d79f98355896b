package page

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

// inCluster lets the page know the accounts of two tokens, of which one may look.
func inCluster(o *Options) {
	o.Token = ""
	o.Access = func(_ context.Context, token string) (int, error) {
		switch token {
		case "of-ann":
			return http.StatusOK, nil
		case "of-bob":
			return http.StatusForbidden, nil
		case "unknown":
			return 0, errors.New("canary")
		default:
			return http.StatusUnauthorized, nil
		}
	}
}

// call sends a request without a cookie to a page in a cluster.
func call(p *Page, method, path string, edit func(*http.Request)) *httptest.ResponseRecorder {
	return ask(p, method, path, func(r *http.Request) {
		r.Header.Del("Cookie")
		r.Host = "page.example.com"
		if edit != nil {
			edit(r)
		}
	})
}

func TestOnlyPermittedAccountsAreLetInToAPageInACluster(t *testing.T) {
	p := newPage(t, newAPI(t, nil), inCluster)
	cookie := func(token string) func(*http.Request) {
		return func(r *http.Request) { r.AddCookie(&http.Cookie{Name: "__Host-kopf-page", Value: token}) }
	}
	header := func(value string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set("Authorization", value) }
	}
	for name, test := range map[string]struct {
		method, path string
		edit         func(*http.Request)
		status       int
		says         string
	}{
		"nobody":                       {"GET", "/", nil, 401, "kubectl create token SERVICEACCOUNT"},
		"nobody, for the changes":      {"GET", "/changes", nil, 401, ""},
		"nobody, for an object":        {"GET", "/object?resource=kopfexamples.kopf.dev&name=one", nil, 401, ""},
		"nobody, for a style":          {"GET", "/static/page.css", nil, 200, ""},
		"an account that may look":     {"GET", "/", cookie("of-ann"), 200, "Log out"},
		"by a header of a proxy":       {"GET", "/", header("bearer of-ann"), 200, ""},
		"by another header":            {"GET", "/", header("Basic of-ann"), 401, ""},
		"an account that may not":      {"GET", "/", cookie("of-bob"), 403, "{nonResourceURLs: [/page], verbs: [get]}"},
		"no account":                   {"GET", "/objects", cookie("of-eve"), 401, "does not know the token"},
		"an unknown account":           {"GET", "/", cookie("unknown"), 500, "the log of the operator says why"},
		"the token in the address":     {"GET", "/?token=of-ann", nil, 401, ""},
		"a cookie of the command":      {"GET", "/", func(r *http.Request) { r.AddCookie(&http.Cookie{Name: "kopf-page-8000", Value: "of-ann"}) }, 401, ""},
		"a form of another site":       {"POST", "/login", func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") }, 403, "comes from another site"},
		"a form of another origin":     {"POST", "/logout", func(r *http.Request) { r.Header.Set("Origin", "https://example.com") }, 403, "comes from another site"},
		"a request for the operator":   {"POST", "/request", cookie("of-ann"), 404, ""},
		"a question about a request":   {"GET", "/request?verb=retry", cookie("of-ann"), 404, ""},
		"logging out without a cookie": {"POST", "/logout", nil, 200, "You are logged out."},
	} {
		t.Run(name, func(t *testing.T) {
			answer := call(p, test.method, test.path, test.edit)
			text := answer.Body.String()
			if answer.Code != test.status || !strings.Contains(text, test.says) || strings.Contains(text, "canary") {
				t.Errorf("got %d %s", answer.Code, text)
			}
			if answer.Code != http.StatusOK && (strings.Contains(text, "kopfexamples") || strings.Contains(text, "<script")) {
				t.Errorf("it shows something: %s", text)
			}
		})
	}
}

func TestATokenOfTheClusterIsLoggedIn(t *testing.T) {
	p := newPage(t, newAPI(t, nil), inCluster)
	logIn := func(token string) *httptest.ResponseRecorder {
		return call(p, "POST", "/login", func(r *http.Request) {
			r.Header.Set("Origin", "https://page.example.com")
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			r.Body = io.NopCloser(strings.NewReader(url.Values{"token": {token}}.Encode()))
		})
	}
	for token, status := range map[string]int{"": 401, "of-eve": 401, "of-bob": 403, "unknown": 500, "of ann": 401, strings.Repeat("x", maxToken+1): 401, strings.Repeat("x", 2*maxBody): 401} {
		if answer := logIn(token); answer.Code != status || len(answer.Result().Cookies()) > 0 || strings.Contains(answer.Body.String(), "of-") {
			t.Errorf("%.20q: got %d %s", token, answer.Code, answer.Body)
		}
	}
	answer := logIn(" of-ann\n")
	cookies := answer.Result().Cookies()
	if answer.Code != http.StatusSeeOther || answer.Header().Get("Location") != "/" || len(cookies) != 1 {
		t.Fatalf("got %d, %v", answer.Code, cookies)
	}
	if c := cookies[0]; c.Value != "of-ann" || !c.Secure || !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Path != "/" || c.MaxAge != 0 || c.Domain != "" {
		t.Errorf("got %+v", c)
	}
	if out := call(p, "POST", "/logout", nil).Result().Cookies(); len(out) != 1 || out[0].MaxAge >= 0 || out[0].Value != "" {
		t.Errorf("got %v", out)
	}
}
