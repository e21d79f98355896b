package certificates

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"

	"github.com/youmark/pkcs8"
	"k8s.io/client-go/util/keyutil"
)

// encryptedPKCS8 is the type of the PEM blocks that openssl writes today.
const encryptedPKCS8 = "ENCRYPTED PRIVATE KEY"

// tlsKeyPair puts a certificate and its key together. The key is decrypted if it is
// encrypted, in the way of today (PKCS #8) or in the old one of openssl.
func tlsKeyPair(chain, key []byte, password string) (*tls.Certificate, error) {
	plain, err := decrypt(key, password)
	if err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(chain, plain)
	return &pair, err
}

func decrypt(key []byte, password string) ([]byte, error) {
	block, _ := pem.Decode(key)
	if block == nil {
		return key, nil // whoever parses it has the better message
	}
	old := x509.IsEncryptedPEMBlock(block) //nolint:staticcheck // it is weak, but people have such keys
	if !old && block.Type != encryptedPKCS8 {
		return key, nil
	}
	if password == "" {
		return nil, errors.New("the key is encrypted: its password is needed")
	}
	plain, err := open(block, password, old)
	if err != nil {
		return nil, fmt.Errorf("the key cannot be decrypted with the given password: %w", err)
	}
	return plain, nil
}

func open(block *pem.Block, password string, old bool) ([]byte, error) {
	if old {
		der, err := x509.DecryptPEMBlock(block, []byte(password)) //nolint:staticcheck // as above
		return pem.EncodeToMemory(&pem.Block{Type: block.Type, Bytes: der}), err
	}
	private, _, err := pkcs8.ParsePrivateKey(block.Bytes, []byte(password))
	if err != nil {
		return nil, err
	}
	return keyutil.MarshalPrivateKeyToPEM(private)
}
