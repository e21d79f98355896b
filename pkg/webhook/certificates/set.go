package certificates

import (
	"bytes"
	"encoding/pem"
	"fmt"
	"time"
)

// Set are the certificates of a server over time: the one that is served, the one
// that will be, and the CA of the one that was.
type Set struct {
	Current, Next KeyPair
	Previous      []byte
}

// NewSet generates the first certificates.
func NewSet(names []string, lifetime time.Duration) (Set, error) {
	current, err := Generate(names, lifetime)
	if err != nil {
		return Set{}, err
	}
	next, err := Generate(names, lifetime)
	return Set{Current: current, Next: next}, err
}

// Rotated is the set in which the next certificate is served.
func (s Set) Rotated(names []string, lifetime time.Duration) (Set, error) {
	previous, err := s.Current.caPEM()
	if err != nil {
		return Set{}, err
	}
	next, err := Generate(names, lifetime)
	return Set{Current: s.Next, Next: next, Previous: previous}, err
}

// Bundle are all CAs that clients are to trust, in PEM.
func (s Set) Bundle() ([]byte, error) {
	current, err := s.Current.caPEM()
	if err != nil {
		return nil, err
	}
	next, err := s.Next.caPEM()
	return mergeBundles(s.Previous, current, next), err
}

// mergeBundles puts bundles together, every certificate in them once.
func mergeBundles(bundles ...[]byte) []byte {
	var all []byte
	for _, bundle := range bundles {
		for block, rest := pem.Decode(bundle); block != nil; block, rest = pem.Decode(rest) {
			if one := pem.EncodeToMemory(block); !bytes.Contains(all, one) {
				all = append(all, one...)
			}
		}
	}
	return all
}

// nextRotation is when the next certificate is to be served. It was generated when the
// current one was served first.
func (s Set) nextRotation(rotation time.Duration) (time.Time, error) {
	next, _, err := s.Next.parse()
	if err != nil {
		return time.Time{}, err
	}
	return next.NotBefore.Add(clockSkew + rotation), nil
}

// validate tells why the set cannot be served under the names now.
func (s Set) validate(names []string) error {
	for _, pair := range []KeyPair{s.Current, s.Next} {
		if _, err := pair.tlsCertificate(); err != nil {
			return fmt.Errorf("a certificate is broken: %w", err)
		}
		served, _, err := pair.parse()
		switch {
		case err != nil:
			return fmt.Errorf("a certificate is broken: %w", err)
		case !isValidFor(served, names):
			return fmt.Errorf("a certificate is not for all of %v", names)
		case time.Now().After(served.NotAfter):
			return fmt.Errorf("a certificate has expired at %v", served.NotAfter)
		}
	}
	return nil
}
