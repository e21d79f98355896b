package certificates

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"

	"github.com/kopf-go/kopf/pkg/internal/sleep"
)

const (
	// filePollInterval is how often files are read again. The kubelet takes a minute until
	// a changed Secret is in the files of a pod; this adds little to it.
	filePollInterval = 10 * time.Second
	// propagationDelay is how long the API servers may take to notice a new bundle, which
	// a cluster in good health does in milliseconds.
	propagationDelay = 5 * time.Second
)

// Files is the Source of certificates that somebody else puts into files, and
// replaces there: a Secret that is mounted, cert-manager, a person.
//
// controller-runtime's certwatcher does nearly the same. It serves a new certificate
// before anybody can tell the cluster about its CA, and does not decrypt keys.
type Files struct {
	// Certificate and Key are the names of PEM files.
	Certificate, Key string
	// Password decrypts the key, if it is encrypted.
	Password string
	// CA is the name of the file with the CAs by which the cluster verifies the
	// certificate. Empty: CAData.
	CA string
	// CAData are the CAs, in PEM. Both empty: those that the cluster trusts anyway.
	CAData []byte
	// Logger hears of what goes wrong.
	Logger logr.Logger

	loaded  fileContent
	current atomic.Pointer[tls.Certificate]
}

// fileContent is what the files have.
type fileContent struct {
	chain, key, ca []byte
}

func (c fileContent) equals(other fileContent) bool {
	return bytes.Equal(c.chain, other.chain) && bytes.Equal(c.key, other.key) && bytes.Equal(c.ca, other.ca)
}

// GetCertificate is the one to serve now.
func (f *Files) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	return f.current.Load(), nil
}

// Open reads the files for the first time.
func (f *Files) Open(context.Context) ([]byte, error) {
	found, pair, err := f.load()
	if err != nil {
		return nil, err
	}
	f.loaded = found
	f.current.Store(pair)
	return found.ca, nil
}

func (f *Files) load() (fileContent, *tls.Certificate, error) {
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
			return fileContent{}, nil, fmt.Errorf("the certificate of the admission server: %w", err)
		}
		*file.into = data
	}
	pair, err := tlsKeyPair(found.chain, found.key, f.Password)
	if err != nil {
		return fileContent{}, nil, fmt.Errorf("the certificate in %s with the key in %s: %w", f.Certificate, f.Key, err)
	}
	return found, pair, nil
}

// Run reads the files again and again.
func (f *Files) Run(ctx context.Context, publish Publish) {
	for sleep.For(ctx, filePollInterval) {
		found, pair, err := f.load()
		if err == nil && !found.equals(f.loaded) {
			err = f.replace(ctx, publish, found, pair)
		}
		if err != nil && ctx.Err() == nil {
			f.Logger.Error(err, "The certificate of the admission server is not replaced yet; the old one is served.")
		}
	}
}

// replace goes from one certificate to another without a moment in which the
// cluster trusts only the CA of the one that is not served.
func (f *Files) replace(ctx context.Context, publish Publish, found fileContent, pair *tls.Certificate) error {
	both := jointBundle(f.loaded.ca, found.ca)
	same := bytes.Equal(found.ca, f.loaded.ca)
	if !same {
		if err := publish(ctx, both); err != nil {
			return err
		}
		sleep.For(ctx, propagationDelay)
	}
	f.current.Store(pair)
	f.loaded = fileContent{chain: found.chain, key: found.key, ca: both}
	f.Logger.V(1).Info("The certificate of the admission server was replaced.", "file", f.Certificate)
	return f.withdrawOldCA(ctx, publish, found, same)
}

// withdrawOldCA ends the trust in the old CA.
func (f *Files) withdrawOldCA(ctx context.Context, publish Publish, found fileContent, same bool) error {
	if !same {
		if !sleep.For(ctx, propagationDelay) {
			return nil
		}
		if err := publish(ctx, found.ca); err != nil {
			return err
		}
	}
	f.loaded = found
	return nil
}

// jointBundle are both bundles. No bundle is the trust in all that the cluster trusts,
// which nothing can be added to.
func jointBundle(a, b []byte) []byte {
	if len(a) == 0 || len(b) == 0 {
		return nil
	}
	return mergeBundles(a, b)
}
