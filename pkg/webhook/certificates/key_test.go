package certificates

import (
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"testing"

	"github.com/onsi/gomega"
	"github.com/youmark/pkcs8"
	"k8s.io/client-go/util/keyutil"
)

func TestKeysCanBeEncrypted(t *testing.T) {
	g := gomega.NewWithT(t)
	pair, err := Generate(hosts, minLifetime)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	private, err := keyutil.ParsePrivateKeyPEM(pair.Key)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	der, err := pkcs8.MarshalPrivateKey(private, []byte("secret"), nil)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	plain, _ := pem.Decode(pair.Key)
	old, err := x509.EncryptPEMBlock(rand.Reader, plain.Type, plain.Bytes, []byte("secret"), x509.PEMCipherAES256) //nolint:staticcheck // people have such keys
	g.Expect(err).NotTo(gomega.HaveOccurred())

	keys := map[string][]byte{
		"in the way of today":   pem.EncodeToMemory(&pem.Block{Type: encryptedPKCS8, Bytes: der}),
		"in the way of old":     pem.EncodeToMemory(old),
		"not encrypted, though": pair.Key,
	}
	for name, key := range keys {
		t.Run(name, func(t *testing.T) {
			g := gomega.NewWithT(t)
			_, err := tlsKeyPair(pair.Chain, key, "secret")
			g.Expect(err).NotTo(gomega.HaveOccurred())
			if string(key) == string(pair.Key) {
				return
			}
			_, err = tlsKeyPair(pair.Chain, key, "")
			g.Expect(err).To(gomega.MatchError("the key is encrypted: its password is needed"))
			_, err = tlsKeyPair(pair.Chain, key, "wrong")
			g.Expect(err).To(gomega.MatchError(gomega.ContainSubstring("cannot be decrypted with the given password")))
			g.Expect(err.Error()).NotTo(gomega.ContainSubstring("wrong"), "a password in an error")
		})
	}
}

func TestWhatIsNoKey(t *testing.T) {
	_, err := tlsKeyPair([]byte("no certificate"), []byte("no key"), "")
	gomega.NewWithT(t).Expect(err).To(gomega.HaveOccurred())
}
