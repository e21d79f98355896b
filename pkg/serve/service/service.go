// Package service calls handlers that are HTTP services, for kopf serve.
//
// A call is a POST with the call as its body, and the answer is the body of the response. The status 200 or 204
// is an answer, 429 and 503 are temporary errors with the delay of Retry-After, other statuses from 500 are
// temporary errors, and all others are errors that the errors of the handler decide about. Redirects are not
// followed: they would carry the object elsewhere.
//
// This package carries no compatibility promise.
package service

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/kopf-go/kopf/pkg/serve/document"
	"github.com/kopf-go/kopf/pkg/serve/protocol"
)

// unreachableDelay is the delay after a service could not be reached, or has failed.
const unreachableDelay = 10 * time.Second

// Caller posts calls to a service.
type Caller struct {
	client *http.Client
	url    string
	token  string // the path of a file
	limit  int64

	authorization string // the header, or empty
}

var _ protocol.Caller = (*Caller)(nil)

// New returns a caller. The paths of the service are absolute. The limit is that of an answer, in bytes.
func New(service document.Service, limit int) (*Caller, error) {
	with := Connection{}
	if service.CertificateAuthority != "" {
		data, err := os.ReadFile(service.CertificateAuthority)
		if err != nil {
			return nil, fmt.Errorf("the certificateAuthority cannot be read: %w", err)
		}
		with.CertificateAuthorities = x509.NewCertPool()
		if !with.CertificateAuthorities.AppendCertsFromPEM(data) {
			return nil, fmt.Errorf("the certificateAuthority %s has no certificate", service.CertificateAuthority)
		}
	}
	if service.Certificate != "" || service.Key != "" {
		certificate, err := tls.LoadX509KeyPair(service.Certificate, service.Key)
		if err != nil {
			return nil, fmt.Errorf("the certificate cannot be loaded: %w", err)
		}
		with.Certificate = &certificate
	}
	c, err := NewWith(service.URL, with, limit)
	if err != nil {
		return nil, err
	}
	c.token = service.BearerTokenFile
	return c, nil
}

// Connection is how a service is reached.
type Connection struct {
	// CertificateAuthorities sign the certificate of the service. Default: those of the system.
	CertificateAuthorities *x509.CertPool
	// Certificate is that of the operator, or nil.
	Certificate *tls.Certificate
	// Authorization is the header, or empty.
	Authorization string
}

// NewWith is New with certificates and credentials that are no files.
func NewWith(of string, with Connection, limit int) (*Caller, error) {
	target, err := url.Parse(of)
	switch {
	case err != nil:
		return nil, fmt.Errorf("the url cannot be parsed: %w", err)
	case target.Scheme != "https" && target.Scheme != "http" || target.Host == "":
		return nil, fmt.Errorf("the url %q must begin with https:// or http://, and a host", of)
	case target.User != nil:
		return nil, errors.New("the url has a password: use bearerTokenFile")
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: with.CertificateAuthorities}
	if with.Certificate != nil {
		config.Certificates = []tls.Certificate{*with.Certificate}
	}
	transport := &http.Transport{
		Proxy: http.ProxyFromEnvironment, TLSClientConfig: config, ForceAttemptHTTP2: true,
		MaxIdleConnsPerHost: 100, IdleConnTimeout: 90 * time.Second, TLSHandshakeTimeout: 10 * time.Second,
	}
	return &Caller{
		client: &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }},
		url:    of, authorization: with.Authorization, limit: int64(limit),
	}, nil
}

// Close closes idle connections.
func (c *Caller) Close() { c.client.CloseIdleConnections() }

// Call posts the call.
func (c *Caller) Call(ctx context.Context, call *protocol.Call, _ *protocol.Conversation) (*protocol.Reply, error) {
	body, err := json.Marshal(call)
	if err != nil {
		return nil, fmt.Errorf("the call cannot be encoded: %w", err)
	}
	response, err := c.Post(ctx, body)
	if err != nil {
		return nil, err
	}
	switch {
	case response.Status == http.StatusOK, response.Status == http.StatusNoContent:
		answer, err := protocol.ParseAnswer(response.Body)
		return &protocol.Reply{Answer: answer}, err
	case response.Status == http.StatusTooManyRequests, response.Status >= http.StatusInternalServerError:
		return nil, protocol.Unavailablef(response.RetryAfter, "the service has answered %s", response.text)
	default:
		return nil, fmt.Errorf("the service has answered %s", response.text)
	}
}

// Response is what a service has answered, whatever its status is.
type Response struct {
	Status int
	Body   []byte
	// RetryAfter is the delay that the service asks for, or a default.
	RetryAfter time.Duration

	text string // of the status
}

// Post posts a body in JSON. Its error is a protocol.TransportError if the service cannot be reached.
func (c *Caller) Post(ctx context.Context, body []byte) (*Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("the request cannot be made: %w", err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json")
	if c.authorization != "" {
		request.Header.Set("Authorization", c.authorization)
	}
	if c.token != "" {
		token, err := os.ReadFile(c.token)
		if err != nil {
			return nil, protocol.Unavailablef(unreachableDelay, "the token cannot be read: %w", err)
		}
		request.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	}
	response, err := c.client.Do(request)
	if err != nil {
		return nil, c.unreachable(ctx, err)
	}
	defer func() { _ = response.Body.Close() }()
	data, err := io.ReadAll(io.LimitReader(response.Body, c.limit+1))
	if err != nil {
		return nil, c.unreachable(ctx, err)
	}
	if int64(len(data)) > c.limit {
		return nil, fmt.Errorf("the service has answered more than %d bytes", c.limit)
	}
	return &Response{response.StatusCode, data, retryAfter(response.Header.Get("Retry-After"), time.Now()), response.Status}, nil
}

// unreachable returns the error of a request without a response.
func (c *Caller) unreachable(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return protocol.Unavailablef(unreachableDelay, "the service cannot be reached: %w", err)
}

// retryAfter returns the delay that a header asks for: a number of seconds, or a time.
func retryAfter(header string, now time.Time) time.Duration {
	const longest = time.Hour
	if seconds, err := strconv.Atoi(header); err == nil && seconds >= 0 {
		return min(time.Duration(seconds)*time.Second, longest)
	}
	if at, err := http.ParseTime(header); err == nil {
		return min(max(0, at.Sub(now)), longest)
	}
	return unreachableDelay
}
