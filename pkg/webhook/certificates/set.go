package certificates

import (
	"bytes"
	"encoding/pem"
	"fmt"
	"time"
)

// Set has the certificates of a server over time: the current one, the next one, and
// the CA of the previous one.
type Set struct {
	Current, Next KeyPair
	Previous      []byte
	// Announced is when the clients were told about the CA of the next certificate. Zero: when
	// that was generated.
	Announced time.Time
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

// Rotated returns the set after a rotation: the next certificate becomes the current
// one.
func (s Set) Rotated(names []string, lifetime time.Duration) (Set, error) {
	previous, err := s.Current.caPEM()
	if err != nil {
		return Set{}, err
	}
	next, err := Generate(names, lifetime)
	return Set{Current: s.Next, Next: next, Previous: previous}, err
}

// Bundle returns all CAs that clients must trust, in PEM.
func (s Set) Bundle() ([]byte, error) {
	current, err := s.Current.caPEM()
	if err != nil {
		return nil, err
	}
	next, err := s.Next.caPEM()
	return mergeBundles(s.Previous, current, next), err
}

// mergeBundles returns all certificates of the bundles, without duplicates.
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

// nextRotation returns the time of the next rotation: the clients know the CA of the next
// certificate for one rotation then.
func (s Set) nextRotation(rotation time.Duration) (time.Time, error) {
	if !s.Announced.IsZero() {
		return s.Announced.Add(rotation), nil
	}
	next, _, err := s.Next.parse()
	if err != nil {
		return time.Time{}, err
	}
	return next.NotBefore.Add(clockSkew + rotation), nil
}

// validate returns an error if the set cannot be served with the names now.
func (s Set) validate(names []string) error {
	for _, pair := range []KeyPair{s.Current, s.Next} {
		if _, err := pair.tlsCertificate(); err != nil {
			return fmt.Errorf("a certificate is not valid: %w", err)
		}
		served, _, err := pair.parse()
		switch {
		case err != nil:
			return fmt.Errorf("a certificate is not valid: %w", err)
		case !isValidFor(served, names):
			return fmt.Errorf("a certificate does not have all of the names %v", names)
		case time.Now().After(served.NotAfter):
			return fmt.Errorf("a certificate expired at %v", served.NotAfter)
		}
	}
	return nil
}
