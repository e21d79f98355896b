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

// tolerance is by how much the clocks may differ: so much older is a generated
// certificate than it is.
const tolerance = time.Hour

// Pair is a generated certificate: the chain of it and its CA, and its key, in PEM.
type Pair struct{ Chain, Key []byte }

// Generate makes a certificate for the names, and a CA for it alone, whose key is
// forgotten at once: nothing else will ever be signed by it.
//
// client-go can make both by one call, with RSA keys, which keep a small machine
// busy for a second.
func Generate(names []string, lifetime time.Duration) (Pair, error) {
	if len(names) == 0 {
		return Pair{}, errors.New("a certificate needs a host name or an address that it is for")
	}
	pair, err := generate(names, lifetime)
	if err != nil {
		return Pair{}, fmt.Errorf("no certificate can be generated for %v: %w", names, err)
	}
	return pair, nil
}

func generate(names []string, lifetime time.Duration) (Pair, error) {
	since := time.Now().Add(-tolerance)
	authority, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Pair{}, err
	}
	ca, err := cert.NewSelfSignedCACert(cert.Config{CommonName: names[0] + "-ca", NotBefore: since}, authority)
	if err != nil {
		return Pair{}, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Pair{}, err
	}
	served, err := sign(names, since, lifetime+tolerance, key.Public(), ca, authority)
	if err != nil {
		return Pair{}, err
	}
	return encode(served, ca, key)
}

// sign makes the certificate of a server.
func sign(names []string, since time.Time, lifetime time.Duration, key crypto.PublicKey, ca *x509.Certificate, authority crypto.Signer) (*x509.Certificate, error) {
	ips, hosts := alternatives(names)
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

func encode(served, ca *x509.Certificate, key crypto.PrivateKey) (Pair, error) {
	chain, err := cert.EncodeCertificates(served, ca)
	if err != nil {
		return Pair{}, err
	}
	private, err := keyutil.MarshalPrivateKeyToPEM(key)
	return Pair{Chain: chain, Key: private}, err
}

// certificates are those of the chain: the one to serve, and the CA.
func (p Pair) certificates() (served, ca *x509.Certificate, err error) {
	chain, err := cert.ParseCertsPEM(p.Chain)
	if err != nil {
		return nil, nil, err
	}
	if len(chain) != 2 {
		return nil, nil, fmt.Errorf("%d certificates instead of one and its CA", len(chain))
	}
	return chain[0], chain[1], nil
}

// ca is the CA in PEM.
func (p Pair) ca() ([]byte, error) {
	_, ca, err := p.certificates()
	if err != nil {
		return nil, err
	}
	return cert.EncodeCertificates(ca)
}

// tls is the pair as servers need it.
func (p Pair) tls() (*tls.Certificate, error) {
	pair, err := tls.X509KeyPair(p.Chain, p.Key)
	return &pair, err
}

// covers tells whether the certificate is for all of the names.
func covers(served *x509.Certificate, names []string) bool {
	for _, name := range names {
		if served.VerifyHostname(name) != nil {
			return false
		}
	}
	return true
}
