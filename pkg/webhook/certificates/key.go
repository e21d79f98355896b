package certificates

import (
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
)

// tlsKeyPair returns the certificate with its private key. An encrypted key is decrypted
// by the given function.
func tlsKeyPair(chain, key []byte, decrypt func(*pem.Block) (crypto.PrivateKey, error)) (*tls.Certificate, error) {
	block, _ := pem.Decode(key) // crypto/tls has a good error message for what is not a key
	if block != nil && isEncrypted(block) {
		if decrypt == nil {
			return nil, errors.New("the private key is encrypted: set DecryptKey of the admission server to a function that decrypts it, " +
				"or decrypt the file, for example with openssl pkey")
		}
		private, err := decrypt(block)
		if err != nil {
			return nil, fmt.Errorf("the private key cannot be decrypted: %w", err)
		}
		der, err := x509.MarshalPKCS8PrivateKey(private)
		if err != nil {
			return nil, fmt.Errorf("the private key was decrypted, but cannot be used: %w", err)
		}
		key = pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
	}
	pair, err := tls.X509KeyPair(chain, key)
	return &pair, err
}

// isEncrypted reports whether a key is encrypted, by PKCS #8 or by the older encryption
// of PEM blocks (RFC 1421).
func isEncrypted(block *pem.Block) bool {
	return block.Type == "ENCRYPTED PRIVATE KEY" || strings.Contains(block.Headers["Proc-Type"], "ENCRYPTED") || block.Headers["DEK-Info"] != ""
}
