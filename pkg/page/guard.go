package page

import (
	"crypto/rand"
	"crypto/subtle"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// NewToken returns a random token for a page.
func NewToken() string { return rand.Text() }

// tokenParameter is the parameter of the first address.
const tokenParameter = "token"

// Address returns the address that lets a browser in.
func Address(host, token string) string {
	return "http://" + host + "/?" + url.Values{tokenParameter: {token}}.Encode()
}

// policy lets the page load only its own files. Nothing in a value of an object can become a script, a style, or a request.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// guard decides who is let in.
type guard interface {
	// letsIn reports whether a request is let in. Otherwise, it has answered.
	letsIn(w http.ResponseWriter, r *http.Request) bool
}

// ServeHTTP serves a request if the guard lets it in.
func (p *Page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("Content-Security-Policy", policy)
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Referrer-Policy", "same-origin") // without a referrer, browsers name no origin of forms
	header.Set("Cross-Origin-Opener-Policy", "same-origin")
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
	header.Set("Cache-Control", "no-store")
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(answerTimeout)) // not every writer has one
	r.Body = http.MaxBytesReader(w, r.Body, maxBody)
	if p.guard.letsIn(w, r) {
		p.mux.ServeHTTP(w, r)
	}
}

// tokenGuard lets in who has the token of a page on this machine, and comes from no other site.
type tokenGuard string

func (g tokenGuard) letsIn(w http.ResponseWriter, r *http.Request) bool {
	origin := r.Header.Get("Origin")
	switch {
	case !isLoopback(r.Host):
		// A foreign name that leads to this machine: its site could read the page.
		refuse(w, "The page is only for names and addresses of this machine, such as localhost.")
	case origin != "" && origin != "http://"+r.Host, origin == "" && !isSafe(r.Method):
		refuse(w, "The request comes from another site.")
	case r.URL.Path == "/" && isSafe(r.Method) && g.isToken(r.URL.Query().Get(tokenParameter)):
		g.admit(w, r)
	case !g.isAdmitted(r):
		refuse(w, "Open the address that the command has printed: it has the token of the page.")
	default:
		return true
	}
	return false
}

func isSafe(method string) bool { return method == http.MethodGet || method == http.MethodHead }

// isLoopback reports whether a host is this machine, at any port: ports are forwarded.
func isLoopback(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return host == "localhost" || net.ParseIP(strings.Trim(host, "[]")).IsLoopback()
}

// refuse answers without a detail of the page.
func refuse(w http.ResponseWriter, why string) { http.Error(w, why, http.StatusForbidden) }

// admit stores the token as a cookie. It answers with a page that leads on: after a redirection, a browser that comes from
// another site does not send the cookie.
func (g tokenGuard) admit(w http.ResponseWriter, r *http.Request) {
	http.SetCookie(w, &http.Cookie{Name: cookieOf(r.Host), Value: string(g), Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode})
	render(w, http.StatusOK, "admitted", nil)
}

func (g tokenGuard) isAdmitted(r *http.Request) bool {
	cookie, err := r.Cookie(cookieOf(r.Host))
	return err == nil && g.isToken(cookie.Value)
}

func (g tokenGuard) isToken(given string) bool {
	return g != "" && subtle.ConstantTimeCompare([]byte(given), []byte(g)) == 1
}

// cookieOf returns the name of the cookie. Pages at different ports of a machine share their cookies.
func cookieOf(host string) string {
	_, port, _ := net.SplitHostPort(host)
	return "kopf-page-" + port
}
