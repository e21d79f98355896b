package certificates

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The keys in the Secret. The first three are the usual keys for TLS, which common tools
// understand.
const (
	keyChain     = corev1.TLSCertKey
	keyKey       = corev1.TLSPrivateKeyKey
	keyBundle    = "ca.crt"
	keyNextChain = "next.crt"
	keyNextKey   = "next.key"
	keyPrevious  = "previous-ca.crt"
	keyAnnounced = "announced" // in RFC 3339
)

// Secret is the Store that replicas share. It needs the permissions to get, create and
// update the Secret. The leader rotates the certificates; if a former leader does so at the
// same time, one of them wins, and the other one uses its certificates.
type Secret struct {
	client client.Client
	secret corev1.Secret // as last loaded or saved
}

// NewSecret returns a store. The client must not read from a cache, and must know the
// core types.
func NewSecret(c client.Client, namespace, name string) *Secret {
	return &Secret{client: c, secret: corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}}
}

// Load reads the certificates from the Secret.
func (s *Secret) Load(ctx context.Context) (Set, bool, error) {
	found := corev1.Secret{}
	err := s.client.Get(ctx, client.ObjectKeyFromObject(&s.secret), &found)
	if apierrors.IsNotFound(err) {
		s.secret.ResourceVersion = ""
		return Set{}, false, nil
	}
	if err != nil {
		return Set{}, false, s.explain("read", err)
	}
	s.secret = found
	data := found.Data
	announced, _ := time.Parse(time.RFC3339Nano, string(data[keyAnnounced])) // zero for what is not there
	return Set{
		Current:  KeyPair{Chain: data[keyChain], Key: data[keyKey]},
		Next:     KeyPair{Chain: data[keyNextChain], Key: data[keyNextKey]},
		Previous: data[keyPrevious], Announced: announced,
	}, true, nil
}

// Save replaces the certificates, unless they have changed since Load.
func (s *Secret) Save(ctx context.Context, set Set) error {
	bundle, err := set.Bundle()
	if err != nil {
		return err
	}
	saved := s.secret.DeepCopy()
	saved.Data = map[string][]byte{
		keyChain: set.Current.Chain, keyKey: set.Current.Key, keyBundle: bundle,
		keyNextChain: set.Next.Chain, keyNextKey: set.Next.Key,
	}
	if len(set.Previous) > 0 {
		saved.Data[keyPrevious] = set.Previous
	}
	if !set.Announced.IsZero() {
		saved.Data[keyAnnounced] = []byte(set.Announced.Format(time.RFC3339Nano))
	}
	if saved.ResourceVersion == "" {
		err = s.client.Create(ctx, saved)
	} else {
		err = s.client.Update(ctx, saved)
	}
	switch {
	case apierrors.IsAlreadyExists(err), apierrors.IsConflict(err), apierrors.IsNotFound(err):
		return ErrChanged
	case err != nil:
		return s.explain("write", err)
	}
	s.secret = *saved
	return nil
}

// explain adds to an error what to do about it.
func (s *Secret) explain(verb string, err error) error {
	name := client.ObjectKeyFromObject(&s.secret)
	if apierrors.IsForbidden(err) {
		return fmt.Errorf("the replicas share the certificates of their admission server in the Secret %s, but this replica is not allowed to %s it. "+
			"Allow the service account to get, create and update it, or set CertFile and KeyFile of the admission server: %w", name, verb, err)
	}
	return fmt.Errorf("the certificates of the admission server in the Secret %s: %w", name, err)
}
