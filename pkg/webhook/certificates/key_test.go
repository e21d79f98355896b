package certificates

import (
	"crypto"
	"encoding/pem"
	"errors"
	"testing"

	"github.com/onsi/gomega"
	"k8s.io/client-go/util/keyutil"
)

// encrypt returns a key that decrypt can read, marked as encrypted.
func encrypt(g gomega.Gomega, key []byte, blockType string, headers map[string]string) []byte {
	plain, _ := pem.Decode(key)
	g.Expect(plain).NotTo(gomega.BeNil())
	return pem.EncodeToMemory(&pem.Block{Type: blockType, Headers: headers, Bytes: flip(plain.Bytes)})
}

func decrypt(block *pem.Block) (crypto.PrivateKey, error) {
	return keyutil.ParsePrivateKeyPEM(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: flip(block.Bytes)}))
}

func flip(data []byte) []byte {
	flipped := make([]byte, len(data))
	for i := range data {
		flipped[i] = ^data[i]
	}
	return flipped
}

func TestEncryptedKeysAreDecryptedByTheUsersFunction(t *testing.T) {
	g := gomega.NewWithT(t)
	pair, err := Generate(hosts, minLifetime)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	keys := map[string][]byte{
		"PKCS #8":       encrypt(g, pair.Key, "ENCRYPTED PRIVATE KEY", nil),
		"older OpenSSL": encrypt(g, pair.Key, "EC PRIVATE KEY", map[string]string{"Proc-Type": "4,ENCRYPTED", "DEK-Info": "AES-256-CBC,00"}),
	}
	for name, key := range keys {
		t.Run(name, func(t *testing.T) {
			g := gomega.NewWithT(t)
			served, err := tlsKeyPair(pair.Chain, key, decrypt)
			g.Expect(err).NotTo(gomega.HaveOccurred())
			g.Expect(served.PrivateKey).NotTo(gomega.BeNil())

			_, err = tlsKeyPair(pair.Chain, key, nil)
			g.Expect(err).To(gomega.MatchError(gomega.ContainSubstring("the private key is encrypted: set DecryptKey")))
			_, err = tlsKeyPair(pair.Chain, key, func(*pem.Block) (crypto.PrivateKey, error) { return nil, errors.New("wrong password") })
			g.Expect(err).To(gomega.MatchError("the private key cannot be decrypted: wrong password"))
			_, err = tlsKeyPair(pair.Chain, key, func(*pem.Block) (crypto.PrivateKey, error) { return "no key", nil })
			g.Expect(err).To(gomega.MatchError(gomega.ContainSubstring("the private key was decrypted, but cannot be used")))
		})
	}
}

func TestPlainKeysAreNotDecrypted(t *testing.T) {
	g := gomega.NewWithT(t)
	pair, err := Generate(hosts, minLifetime)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	_, err = tlsKeyPair(pair.Chain, pair.Key, func(*pem.Block) (crypto.PrivateKey, error) { return nil, errors.New("called") })
	g.Expect(err).NotTo(gomega.HaveOccurred())
}

func TestInvalidKeysAreErrors(t *testing.T) {
	_, err := tlsKeyPair([]byte("no certificate"), []byte("no key"), decrypt)
	gomega.NewWithT(t).Expect(err).To(gomega.HaveOccurred())
}
