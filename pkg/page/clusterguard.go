package page

import (
	"context"
	"net/http"
	"strings"
)

// AccessPath is the path that an account must be permitted to get, to look at a page in a cluster.
const AccessPath = "/page"

// Access returns a status for a bearer token of the cluster: OK if its account may look, Unauthorized if the token is of no
// account, and Forbidden if the account may not look. With an error, that is unknown.
type Access func(ctx context.Context, token string) (status int, err error)

// clusterGuard lets in who has a token of the cluster whose account may look. A browser sends it as a cookie, after a form was
// sent; a proxy can send it as a header.
type clusterGuard struct {
	access  Access
	origins *http.CrossOriginProtection
}

// accessCookie has the token. Browsers send a cookie with this prefix only over HTTPS, and no other host can set it.
const accessCookie = "__Host-kopf-page"

// maxToken is the size of a token, in bytes: browsers keep no larger cookies.
const maxToken = 3800

func (g clusterGuard) letsIn(w http.ResponseWriter, r *http.Request) bool {
	isForm := r.Method == http.MethodPost
	switch {
	case g.origins.Check(r) != nil:
		refuse(w, "The request comes from another site.")
		return false
	case strings.HasPrefix(r.URL.Path, "/static/"): // the form needs them
		return true
	case isForm && r.URL.Path == "/login":
		g.logIn(w, r)
		return false
	case isForm && r.URL.Path == "/logout":
		setAccessCookie(w, "")
		askForToken(w, http.StatusOK, "You are logged out.")
		return false
	}
	token := tokenOf(r)
	if token == "" {
		askForToken(w, http.StatusUnauthorized, "")
		return false
	}
	return g.permits(w, r, token)
}

// permits reports whether an account may look. Otherwise, it says why not.
func (g clusterGuard) permits(w http.ResponseWriter, r *http.Request, token string) bool {
	status, err := g.access(r.Context(), token)
	switch {
	case err != nil:
		askForToken(w, http.StatusInternalServerError, "It is unknown now whether you may look: the log of the operator says why.")
	case status == http.StatusUnauthorized:
		askForToken(w, status, "The cluster does not know the token, or it has expired.")
	case status != http.StatusOK:
		askForToken(w, status, "The account of the token may not look. Bind it to a ClusterRole with the rule {nonResourceURLs: ["+AccessPath+"], verbs: [get]}.")
	default:
		return true
	}
	return false
}

// logIn stores the token of a form as a cookie, if its account may look.
func (g clusterGuard) logIn(w http.ResponseWriter, r *http.Request) {
	token := strings.TrimSpace(r.PostFormValue("token"))
	switch {
	case token == "":
		askForToken(w, http.StatusUnauthorized, "There is no token in the form.")
	case len(token) > maxToken || strings.ContainsAny(token, " \t\r\n\",;\\"):
		askForToken(w, http.StatusUnauthorized, "This is no token of a service account.")
	case g.permits(w, r, token):
		setAccessCookie(w, token)
		http.Redirect(w, r, "/", http.StatusSeeOther)
	}
}

// tokenOf returns the token of a request, or "".
func tokenOf(r *http.Request) string {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if strings.EqualFold(scheme, "Bearer") {
		return strings.TrimSpace(token)
	}
	cookie, err := r.Cookie(accessCookie)
	if err != nil {
		return ""
	}
	return cookie.Value
}

// setAccessCookie stores a token until the browser ends, or removes it if it is empty.
func setAccessCookie(w http.ResponseWriter, token string) {
	cookie := &http.Cookie{Name: accessCookie, Value: token, Path: "/", Secure: true, HttpOnly: true, SameSite: http.SameSiteStrictMode}
	if token == "" {
		cookie.MaxAge = -1
	}
	http.SetCookie(w, cookie)
}

// loginView asks for a token.
type loginView struct {
	base

	Problem string
}

func askForToken(w http.ResponseWriter, status int, problem string) {
	render(w, status, "login", loginView{base{Title: "Log in"}, problem})
}
