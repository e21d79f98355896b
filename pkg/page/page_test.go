package page

import (
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
)

func TestOnlyTheOwnBrowserIsLetIn(t *testing.T) {
	p := newPage(t, newAPI(t, nil), nil)
	set := func(header, value string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set(header, value) }
	}
	for name, test := range map[string]struct {
		method, path string
		edit         func(*http.Request)
		want         int
	}{
		"with the cookie":                   {"GET", "/", nil, 200},
		"a name of this machine":            {"GET", "/", func(r *http.Request) { r.Host = "localhost:8000" }, 200},
		"another port":                      {"GET", "/", func(r *http.Request) { r.Host = "127.0.0.1:8001" }, 403},
		"no cookie":                         {"GET", "/", func(r *http.Request) { r.Header.Del("Cookie") }, 403},
		"no cookie for a file":              {"GET", "/static/page.js", func(r *http.Request) { r.Header.Del("Cookie") }, 403},
		"no cookie for the changes":         {"GET", "/changes", func(r *http.Request) { r.Header.Del("Cookie") }, 403},
		"a wrong cookie":                    {"GET", "/", set("Cookie", "kopf-page-8000=other"), 403},
		"an empty cookie":                   {"GET", "/", set("Cookie", "kopf-page-8000="), 403},
		"a wrong token":                     {"GET", "/?token=other", func(r *http.Request) { r.Header.Del("Cookie") }, 403},
		"the token":                         {"GET", "/?token=" + token, func(r *http.Request) { r.Header.Del("Cookie") }, 200},
		"the token, and a foreign name":     {"GET", "/?token=" + token, func(r *http.Request) { r.Host = "example.com:8000" }, 403},
		"a foreign name that leads here":    {"GET", "/", func(r *http.Request) { r.Host = "127.0.0.1.example.com:8000" }, 403},
		"the own origin":                    {"GET", "/", set("Origin", "http://127.0.0.1:8000"), 200},
		"a foreign origin":                  {"GET", "/", set("Origin", "http://example.com"), 403},
		"another port of this machine":      {"GET", "/", set("Origin", "http://127.0.0.1:3000"), 403},
		"an unknown origin":                 {"GET", "/", set("Origin", "null"), 403},
		"a form without requests":           {"POST", "/request", set("Origin", "http://127.0.0.1:8000"), 404},
		"a form of an unknown origin":       {"POST", "/request", nil, 403},
		"a question without requests":       {"GET", "/request?verb=retry", nil, 404},
		"another method":                    {"DELETE", "/objects", set("Origin", "http://127.0.0.1:8000"), 405},
		"a page that does not exist":        {"GET", "/nothing", nil, 404},
		"an object that does not exist":     {"GET", "/object?resource=kopfexamples.kopf.dev&name=absent", nil, 404},
		"a resource that is not handled":    {"GET", "/object?resource=pods&name=a", nil, 404},
		"a file outside of the static ones": {"GET", "/static/../page.go", nil, 307},
	} {
		t.Run(name, func(t *testing.T) {
			answer := ask(p, test.method, test.path, test.edit)
			if answer.Code != test.want {
				t.Errorf("got %d %s", answer.Code, answer.Body)
			}
			if got := answer.Header().Get("Content-Security-Policy"); got != policy || strings.Contains(got, "unsafe") {
				t.Errorf("got the policy %q", got)
			}
			if answer.Code == http.StatusForbidden && strings.Contains(answer.Body.String(), "<") {
				t.Errorf("got a page: %s", answer.Body)
			}
		})
	}
}

func TestTheTokenBecomesACookie(t *testing.T) {
	p := newPage(t, newAPI(t, nil), nil)
	address := Address("127.0.0.1:8000", token)
	answer := ask(p, "GET", strings.TrimPrefix(address, "http://127.0.0.1:8000"), func(r *http.Request) { r.Header.Del("Cookie") })
	cookies := answer.Result().Cookies()
	if len(cookies) != 1 || cookies[0].Name != "kopf-page-8000" || cookies[0].Value != token || !cookies[0].HttpOnly || cookies[0].SameSite != http.SameSiteStrictMode {
		t.Errorf("got %v", cookies)
	}
	first, second := NewToken(), NewToken()
	if first == second || len(first) < 20 {
		t.Error("tokens can be guessed")
	}
	if without := newPage(t, newAPI(t, nil), func(o *Options) { o.Token = "" }); ask(without, "GET", "/?token=", nil).Code != http.StatusForbidden {
		t.Error("an empty token lets in")
	}
}

// hostile is markup in a value.
const hostile = `"><script>alert(1)</script>`

func TestValuesAreEscaped(t *testing.T) {
	path, object := example(`"kopf.zalando.org/last-handled-configuration":"{\"spec\":{\"text\":1}}"`, `{"text":"\"><script>alert(1)</script>"}`)
	p := newPage(t, newAPI(t, map[string]string{path: object}), nil)
	query := url.Values{"resource": {"kopfexamples.kopf.dev"}, "namespace": {"default"}, "name": {"one"}}
	for name, test := range map[string]struct{ path, want string }{
		"a field":              {"/object?" + query.Encode(), "spec.text: 1 -&gt; "},
		"a name":               {"/object?" + url.Values{"resource": {"kopfexamples"}, "name": {hostile}}.Encode(), "&lt;script&gt;alert(1)"},
		"a resource":           {"/object?" + url.Values{"resource": {hostile}, "name": {"a"}}.Encode(), "&lt;script&gt;alert(1)"},
		"a filter":             {"/objects?" + url.Values{"name": {hostile}, "namespace": {hostile}}.Encode(), "&lt;script&gt;alert(1)"},
		"a resource to filter": {"/objects?" + url.Values{"resource": {hostile}}.Encode(), "resource=%22%3E%3Cscript%3E"},
	} {
		t.Run(name, func(t *testing.T) {
			got := ask(p, "GET", test.path, nil).Body.String()
			if strings.Contains(got, "<script>alert") || !strings.Contains(got, test.want) {
				t.Errorf("got %s", got)
			}
			if strings.Contains(got, "style=") || strings.Count(got, "<script") != 1 {
				t.Errorf("there are scripts or styles in the page: %s", got)
			}
		})
	}
}

func TestThePageOnlyReads(t *testing.T) {
	path, object := example("", "{}")
	secret := `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s","namespace":"default","uid":"u-s","resourceVersion":"6",` +
		`"annotations":{"kopf.zalando.org/last-handled-configuration":"{\"data\":{\"password\":\"b2xk\"}}"}},"data":{"password":"Y2FuYXJ5"}}`
	api := newAPI(t, map[string]string{path: object, "/api/v1/namespaces/default/secrets/s": secret})
	p := newPage(t, api, nil)
	for _, path := range []string{"/", "/objects", "/operator", "/object?resource=kopfexamples.kopf.dev&namespace=default&name=one", "/object?resource=secrets&namespace=default&name=s"} {
		answer := ask(p, "GET", path, nil)
		text := answer.Body.String()
		if answer.Code != http.StatusOK || strings.Contains(text, "Y2FuYXJ5") || strings.Contains(text, "b2xk") || strings.Contains(text, "/request?") {
			t.Errorf("%s: got %d %s", path, answer.Code, text)
		}
	}
	for _, method := range []string{"POST", "PUT", "PATCH", "DELETE"} {
		ask(p, method, "/request", func(r *http.Request) { r.Header.Set("Origin", "http://127.0.0.1:8000") })
	}
	if got := api.written(); len(got) > 0 {
		t.Errorf("it writes: %q", got)
	}
}

func TestRequestsAreAskedTwice(t *testing.T) {
	path, object := example(`"kopf.zalando.org/last-handled-configuration":"{\"spec\":{}}"`, "{}")
	api := newAPI(t, map[string]string{path: object})
	p := newPage(t, api, func(o *Options) { o.Writing = &rest.Config{Host: api.URL} })
	shown := ask(p, "GET", "/object?resource=kopfexamples.kopf.dev&namespace=default&name=one", nil).Body.String()
	for _, verb := range []string{"rerun", "suspend"} {
		if !strings.Contains(shown, "verb="+verb) {
			t.Errorf("%s is not offered: %s", verb, shown)
		}
	}
	for _, verb := range []string{"retry", "rerun", "skip", "suspend", "unsuspend"} {
		if answer := ask(p, "GET", "/request?resource=kopfexamples.kopf.dev&namespace=default&name=one&handler=create&verb="+verb, nil); answer.Code != http.StatusOK || !strings.Contains(answer.Body.String(), `<form action="/request" method="post">`) {
			t.Errorf("%s: got %s", verb, answer.Body)
		}
	}
	if got := api.written(); len(got) > 0 {
		t.Errorf("it writes without a confirmation: %q", got)
	}
	send := func(form url.Values) (int, string) {
		answer := ask(p, "POST", "/request", func(r *http.Request) {
			r.Header.Set("Origin", "http://127.0.0.1:8000")
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			r.Body = io.NopCloser(strings.NewReader(form.Encode()))
		})
		return answer.Code, answer.Body.String()
	}
	of := func(values url.Values) url.Values {
		for key, value := range map[string]string{"resource": "kopfexamples.kopf.dev", "namespace": "default", "name": "one"} {
			values.Set(key, value)
		}
		return values
	}
	for name, form := range map[string]url.Values{
		"no verb":              of(url.Values{}),
		"an unknown verb":      of(url.Values{"verb": {"delete"}, "handler": {"create"}}),
		"no handler":           of(url.Values{"verb": {"rerun"}}),
		"no time":              of(url.Values{"verb": {"suspend"}}),
		"a time that is over":  of(url.Values{"verb": {"suspend"}, "for": {"-1h"}}),
		"a form that is large": of(url.Values{"verb": {"rerun"}, "handler": {strings.Repeat("x", 2*maxBody)}}),
	} {
		if code, text := send(form); code != http.StatusBadRequest {
			t.Errorf("%s: got %d %s", name, code, text)
		}
	}
	if code, text := send(of(url.Values{"verb": {"retry"}, "handler": {"create"}})); code != http.StatusConflict || !strings.Contains(text, "nothing was written") {
		t.Errorf("got %d %s", code, text)
	}
	if got := api.written(); len(got) > 0 {
		t.Errorf("it writes what is refused: %q", got)
	}
	send(of(url.Values{"verb": {"rerun"}, "handler": {"create"}})) // the API server refuses it
	if got := api.written(); !slices.Equal(got, []string{"PATCH " + path}) {
		t.Errorf("got %q", got)
	}
}
