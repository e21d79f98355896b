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
	"time"

	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

// clockSkew is by how much the clocks may differ: so much older is a generated
// certificate than it is.
const clockSkew = time.Hour

// KeyPair is a generated certificate: the chain of it and its CA, and its key, in PEM.
type KeyPair struct{ Chain, Key []byte }

// Generate makes a certificate for the names, and a CA for it alone, whose key is
// forgotten at once: nothing else will ever be signed by it.
//
// client-go can make both by one call, with RSA keys, which keep a small machine
// busy for a second.
func Generate(names []string, lifetime time.Duration) (KeyPair, error) {
	if len(names) == 0 {
		return KeyPair{}, errors.New("a certificate needs a host name or an address that it is for")
	}
	pair, err := generate(names, lifetime)
	if err != nil {
		return KeyPair{}, fmt.Errorf("no certificate can be generated for %v: %w", names, err)
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
	return encode(served, ca, key)
}

// sign makes the certificate of a server.
func sign(names []string, since time.Time, lifetime time.Duration, key crypto.PublicKey, ca *x509.Certificate, authority crypto.Signer) (*x509.Certificate, error) {
	ips, hosts := subjectAltNames(names)
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

func encode(served, ca *x509.Certificate, key crypto.PrivateKey) (KeyPair, error) {
	chain, err := cert.EncodeCertificates(served, ca)
	if err != nil {
		return KeyPair{}, err
	}
	private, err := keyutil.MarshalPrivateKeyToPEM(key)
	return KeyPair{Chain: chain, Key: private}, err
}

// parse are those of the chain: the one to serve, and the CA.
func (p KeyPair) parse() (served, ca *x509.Certificate, err error) {
	chain, err := cert.ParseCertsPEM(p.Chain)
	if err != nil {
		return nil, nil, err
	}
	if len(chain) != 2 {
		return nil, nil, fmt.Errorf("%d certificates instead of one and its CA", len(chain))
	}
	return chain[0], chain[1], nil
}

// caPEM is the CA in PEM.
func (p KeyPair) caPEM() ([]byte, error) {
	_, ca, err := p.parse()
	if err != nil {
		return nil, err
	}
	return cert.EncodeCertificates(ca)
}

// tlsCertificate is the pair as servers need it.
func (p KeyPair) tlsCertificate() (*tls.Certificate, error) {
	pair, err := tls.X509KeyPair(p.Chain, p.Key)
	return &pair, err
}

// isValidFor tells whether the certificate is for all of the names.
func isValidFor(served *x509.Certificate, names []string) bool {
	for _, name := range names {
		if served.VerifyHostname(name) != nil {
			return false
		}
	}
	return true
}
