package login

import (
	"errors"
	"net/http"
	"net/url"
	"strings"

	"k8s.io/client-go/rest"
)

// errInvalidHost does not quote the host, which can contain passwords.
var errInvalidHost = errors.New("Config.Host is neither host:port nor a URL")

// serverURLOf returns the URL that all paths of the API begin with.
func serverURLOf(config *rest.Config) (*url.URL, error) {
	if config == nil {
		return nil, errors.New("Config is missing")
	}
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil || base.Host == "" {
		return nil, errInvalidHost
	}
	base.Path = strings.TrimRight(base.Path, "/")
	base.RawPath = strings.TrimRight(base.RawPath, "/")
	return base, nil
}

// withoutUserinfo returns the URL without its user and password.
func withoutUserinfo(base *url.URL) *url.URL {
	shown := *base
	shown.User = nil
	return &shown
}

// retarget redirects a request from one API server to another. It fails for any other
// server: a redirect elsewhere must not receive the credentials.
func retarget(request *http.Request, from, to *url.URL) error {
	old := *request.URL
	switch old.Host {
	case from.Host:
	case to.Host:
		from = to
	default:
		return errors.New("the request is not for the API server, and must not get the credentials for it")
	}
	moved := old
	moved.Scheme = to.Scheme
	moved.User = to.User
	moved.Host = to.Host
	moved.Path = to.Path + strings.TrimPrefix(old.Path, from.Path)
	if old.RawPath != "" || to.RawPath != "" {
		moved.RawPath = to.EscapedPath() + strings.TrimPrefix(old.EscapedPath(), from.EscapedPath())
	}
	request.URL = &moved
	if request.Host == old.Host {
		request.Host = "" // the host of the URL
	}
	return nil
}
