package certificates

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"net"
	"time"

	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

// clockSkew is by how much clocks may differ: generated certificates are valid from
// that much earlier.
const clockSkew = time.Hour

// KeyPair is a generated certificate in PEM: the chain of the certificate and its CA,
// and the private key of the certificate.
type KeyPair struct{ Chain, Key []byte }

// Generate generates a certificate for the names, with a CA for this certificate only:
// the key of the CA is discarded and cannot sign anything else.
//
// client-go can generate both with one call, but with RSA keys, which take a small
// machine a second.
func Generate(names []string, lifetime time.Duration) (KeyPair, error) {
	if len(names) == 0 {
		return KeyPair{}, errors.New("a certificate needs at least one host name or address")
	}
	pair, err := generate(names, lifetime)
	if err != nil {
		return KeyPair{}, fmt.Errorf("generating a certificate for %v: %w", names, err)
	}
	return pair, nil
}

func generate(names []string, lifetime time.Duration) (KeyPair, error) {
	since := time.Now().Add(-clockSkew)
	authority, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return KeyPair{}, err
	}
	ca, err := cert.NewSelfSignedCACert(cert.Config{CommonName: names[0] + "-ca", NotBefore: since}, authority)
	if err != nil {
		return KeyPair{}, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return KeyPair{}, err
	}
	served, err := sign(names, since, lifetime+clockSkew, key.Public(), ca, authority)
	if err != nil {
		return KeyPair{}, err
	}
	chain, err := cert.EncodeCertificates(served, ca)
	if err != nil {
		return KeyPair{}, err
	}
	private, err := keyutil.MarshalPrivateKeyToPEM(key)
	return KeyPair{Chain: chain, Key: private}, err
}

// sign returns the certificate of a server.
func sign(names []string, since time.Time, lifetime time.Duration, key crypto.PublicKey, ca *x509.Certificate, authority crypto.Signer) (*x509.Certificate, error) {
	var ips []net.IP
	var hosts []string
	for _, name := range names {
		if ip := net.ParseIP(name); ip != nil {
			ips = append(ips, ip)
		} else {
			hosts = append(hosts, name)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		Subject:               pkix.Name{CommonName: names[0]},
		DNSNames:              hosts,
		IPAddresses:           ips,
		NotBefore:             since.UTC(),
		NotAfter:              since.Add(lifetime).UTC(),
		KeyUsage:              x509.KeyUsageDigitalSignature,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true,
	}, ca, key, authority)
	if err != nil {
		return nil, err
	}
	return x509.ParseCertificate(der)
}

// parse returns the certificates of the chain: the certificate to serve and its CA.
func (p KeyPair) parse() (served, ca *x509.Certificate, err error) {
	chain, err := cert.ParseCertsPEM(p.Chain)
	if err != nil {
		return nil, nil, err
	}
	if len(chain) != 2 {
		return nil, nil, fmt.Errorf("the chain has %d certificates instead of 2: the certificate and its CA", len(chain))
	}
	return chain[0], chain[1], nil
}

// caPEM returns the CA in PEM.
func (p KeyPair) caPEM() ([]byte, error) {
	_, ca, err := p.parse()
	if err != nil {
		return nil, err
	}
	return cert.EncodeCertificates(ca)
}

// tlsCertificate returns the pair for a TLS server.
func (p KeyPair) tlsCertificate() (*tls.Certificate, error) {
	pair, err := tls.X509KeyPair(p.Chain, p.Key)
	return &pair, err
}

// isValidFor reports whether the certificate is valid for all of the names.
func isValidFor(served *x509.Certificate, names []string) bool {
	for _, name := range names {
		if served.VerifyHostname(name) != nil {
			return false
		}
	}
	return true
}
