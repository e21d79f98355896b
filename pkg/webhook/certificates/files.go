package certificates

import (
	"bytes"
	"context"
	"crypto"
	"crypto/tls"
	"encoding/pem"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"

	"github.com/kopf-go/kopf/pkg/internal/sleep"
)

const (
	// filePollInterval is how often files are read again. The kubelet takes a minute
	// to update the files of a changed Secret in a pod; this adds little to it.
	filePollInterval = 10 * time.Second
	// propagationDelay is how long the API servers may take to notice a new bundle. In
	// a healthy cluster they take milliseconds.
	propagationDelay = 5 * time.Second
)

// Files is a Source of certificates that are in files and are replaced there: by the
// kubelet for a mounted Secret, by cert-manager, by a person.
type Files struct {
	// Certificate and Key are the names of PEM files.
	Certificate, Key string
	// DecryptKey decrypts the key, if it is encrypted. It is called when the files
	// change. Default: an encrypted key is an error.
	DecryptKey func(*pem.Block) (crypto.PrivateKey, error)
	// CA is the name of the file with the CAs by which the cluster verifies the
	// certificate. Default: CAData.
	CA string
	// CAData are these CAs, in PEM. Default: the CAs that the cluster trusts.
	CAData []byte
	// Logger logs failures to replace the certificate.
	Logger logr.Logger

	loaded  fileContent
	current atomic.Pointer[tls.Certificate]
}

// fileContent is the content of the files.
type fileContent struct {
	chain, key, ca []byte
}

func (c fileContent) equals(other fileContent) bool {
	return bytes.Equal(c.chain, other.chain) && bytes.Equal(c.key, other.key) && bytes.Equal(c.ca, other.ca)
}

// GetCertificate returns the current certificate.
func (f *Files) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	return f.current.Load(), nil
}

// Open reads the files for the first time.
func (f *Files) Open(context.Context) ([]byte, error) {
	found, err := f.read()
	if err != nil {
		return nil, err
	}
	pair, err := f.keyPair(found)
	if err != nil {
		return nil, err
	}
	f.loaded = found
	f.current.Store(pair)
	return found.ca, nil
}

func (f *Files) read() (fileContent, error) {
	found := fileContent{ca: f.CAData}
	for _, file := range []struct {
		name string
		into *[]byte
	}{{f.Certificate, &found.chain}, {f.Key, &found.key}, {f.CA, &found.ca}} {
		if file.name == "" {
			continue
		}
		data, err := os.ReadFile(file.name)
		if err != nil {
			return fileContent{}, fmt.Errorf("the certificate of the admission server: %w", err)
		}
		*file.into = data
	}
	return found, nil
}

func (f *Files) keyPair(found fileContent) (*tls.Certificate, error) {
	pair, err := tlsKeyPair(found.chain, found.key, f.DecryptKey)
	if err != nil {
		return nil, fmt.Errorf("the certificate in %s with the key in %s: %w", f.Certificate, f.Key, err)
	}
	return pair, nil
}

// Run reads the files again and again, and replaces the certificate when they change.
func (f *Files) Run(ctx context.Context, publish Publish) {
	for sleep.For(ctx, filePollInterval) {
		if err := f.reload(ctx, publish); err != nil && ctx.Err() == nil {
			f.Logger.Error(err, "The certificate of the admission server is not replaced yet; the old one is served.")
		}
	}
}

// reload serves another certificate if the files have changed. At no moment does the cluster
// trust only the CA of the certificate that is not served.
func (f *Files) reload(ctx context.Context, publish Publish) error {
	found, err := f.read()
	if err != nil || found.equals(f.loaded) {
		return err
	}
	pair, err := f.keyPair(found)
	if err != nil {
		return err
	}
	both := jointBundle(f.loaded.ca, found.ca)
	sameCA := bytes.Equal(found.ca, f.loaded.ca)
	if !sameCA {
		if err := publish(ctx, both); err != nil {
			return err
		}
		sleep.For(ctx, propagationDelay)
	}
	f.current.Store(pair)
	f.loaded = fileContent{chain: found.chain, key: found.key, ca: both}
	f.Logger.V(1).Info("The certificate of the admission server was replaced.", "file", f.Certificate)
	if !sameCA {
		if !sleep.For(ctx, propagationDelay) {
			return nil
		}
		if err := publish(ctx, found.ca); err != nil { // without the old CA
			return err
		}
	}
	f.loaded = found
	return nil
}

// jointBundle returns a bundle with the CAs of both. An empty bundle means all CAs that
// the cluster trusts, to which nothing can be added.
func jointBundle(a, b []byte) []byte {
	if len(a) == 0 || len(b) == 0 {
		return nil
	}
	return mergeBundles(a, b)
}
