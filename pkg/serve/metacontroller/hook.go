package metacontroller

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/serve/document"
	"github.com/kopf-go/kopf/pkg/serve/service"
)

// hook calls a webhook.
type hook struct {
	*document.Hook

	limit int

	mu sync.Mutex
	// service is nil as long as the certificates and credentials are unknown.
	service *service.Caller
}

// newHook returns nil for a hook that is not declared. The limit is that of an answer, in bytes.
func newHook(declared *document.Hook, limit int) (*hook, error) {
	if declared == nil {
		return nil, nil //nolint:nilnil // most controllers have not all hooks
	}
	caller, err := service.NewWith(declared.URL, service.Connection{}, limit)
	if err != nil {
		return nil, err
	}
	h := &hook{Hook: declared, limit: limit}
	if declared.Connection == nil {
		h.service = caller
	}
	return h, nil
}

func (h *hook) close() {
	if h != nil {
		h.disconnect()
	}
}

// disconnect closes the connections to a hook, whose certificates and credentials are read again for the next call.
func (h *hook) disconnect() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.service != nil {
		h.service.Close()
	}
	if h.Connection != nil {
		h.service = nil
	}
}

// connect returns who calls the hook, with its certificates and credentials.
func (h *hook) connect(ctx context.Context, from client.Client) (*service.Caller, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.service != nil {
		return h.service, nil
	}
	with, err := resolve(ctx, from, h.Connection)
	if err != nil {
		return nil, fmt.Errorf("the hook %s cannot be called: %w", h.URL, err)
	}
	h.service, err = service.NewWith(h.URL, with, h.limit)
	return h.service, err
}

// resolve reads the certificates and credentials of a connection.
func resolve(ctx context.Context, from client.Client, of *document.Connection) (service.Connection, error) {
	var with service.Connection
	values := map[document.Reference][]byte{}
	for _, ref := range of.References() {
		value, err := read(ctx, from, ref)
		if err != nil {
			return with, err
		}
		values[ref] = value
	}
	bundle := []byte(of.CABundle)
	if of.CABundleFrom.Name != "" {
		bundle = values[of.CABundleFrom]
	}
	if len(bundle) > 0 {
		with.CertificateAuthorities = x509.NewCertPool()
		if !with.CertificateAuthorities.AppendCertsFromPEM(bundle) {
			return with, errors.New("the caBundle has no certificate in PEM")
		}
	}
	if of.Certificate.Name != "" {
		certificate, err := tls.X509KeyPair(values[of.Certificate], values[of.Key])
		if err != nil {
			return with, fmt.Errorf("the certificate of clientTLS cannot be used: %w", err)
		}
		with.Certificate = &certificate
	}
	text := func(ref document.Reference) string { return strings.TrimSpace(string(values[ref])) }
	switch {
	case of.Token.Name != "":
		with.Authorization = of.Scheme + " " + text(of.Token)
	case of.Username.Name != "":
		with.Authorization = "Basic " + base64.StdEncoding.EncodeToString([]byte(text(of.Username)+":"+text(of.Password)))
	}
	return with, nil
}

// read returns the value of a key of a Secret or a ConfigMap.
func read(ctx context.Context, from client.Client, ref document.Reference) ([]byte, error) {
	name := types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}
	var value []byte
	var exists bool
	var err error
	if ref.Kind == "ConfigMap" {
		var found corev1.ConfigMap
		err = from.Get(ctx, name, &found)
		var text string
		text, exists = found.Data[ref.Key]
		value = []byte(text)
	} else {
		var found corev1.Secret
		err = from.Get(ctx, name, &found)
		value, exists = found.Data[ref.Key]
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("its %s %s cannot be read: %w", ref.Kind, name, err)
	case !exists:
		return nil, fmt.Errorf("its %s %s has no key %s", ref.Kind, name, ref.Key)
	}
	return value, nil
}

// busyError means that a hook has asked to be left alone.
type busyError struct{ after time.Duration }

// Error says for how long.
func (e *busyError) Error() string {
	return fmt.Sprintf("the hook has answered 429 Too Many Requests: it is called again after %s", e.after)
}

var errHookTimeout = errors.New("the hook takes too long")

// call posts a request, and returns the body of the answer.
func (h *hook) call(ctx context.Context, from client.Client, request any) ([]byte, error) {
	body, err := json.Marshal(request)
	if err != nil {
		return nil, fmt.Errorf("the request of the hook cannot be encoded: %w", err)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, h.Timeout, errHookTimeout)
	defer cancel()
	caller, err := h.connect(ctx, from)
	if err != nil {
		return nil, err
	}
	response, err := caller.Post(ctx, body)
	if err != nil || response.Status == http.StatusUnauthorized || response.Status == http.StatusForbidden {
		h.disconnect()
	}
	switch {
	case errors.Is(context.Cause(ctx), errHookTimeout) && err != nil:
		return nil, fmt.Errorf("the hook %s was canceled after %s, which is its timeout", h.URL, h.Timeout)
	case err != nil:
		return nil, fmt.Errorf("the hook %s cannot be called: %w", h.URL, err)
	case response.Status == http.StatusTooManyRequests:
		return nil, &busyError{response.RetryAfter}
	case response.Status != http.StatusOK:
		return nil, fmt.Errorf("the hook %s has answered %d %s, and not 200: %s", h.URL, response.Status, http.StatusText(response.Status), excerpt(response.Body))
	}
	return response.Body, nil
}

// excerpt returns the beginning of a text.
func excerpt(text []byte) string {
	const longest = 500
	if len(text) > longest {
		return string(text[:longest]) + "…"
	}
	return string(text)
}
