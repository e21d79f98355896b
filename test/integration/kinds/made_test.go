package kinds

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"math/big"
	"time"
)

var key = func() ed25519.PrivateKey {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		panic(err)
	}
	return key
}()

// signingRequest is a certificate signing request, as JSON has it.
var signingRequest = func() string {
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: "a"}}, key)
	if err != nil {
		panic(err)
	}
	return base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}))
}()

// bareRequest is the same without its armor.
var bareRequest = func() string {
	armored, err := base64.StdEncoding.DecodeString(signingRequest)
	if err != nil {
		panic(err)
	}
	block, _ := pem.Decode(armored)
	return base64.StdEncoding.EncodeToString(block.Bytes)
}()

// certificate returns the certificate of an authority.
func certificate(name string) string {
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now(), NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		panic(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

// bundle returns the certificate of an authority, as JSON has it.
func bundle(name string) string {
	return base64.StdEncoding.EncodeToString([]byte(certificate(name)))
}

// structural returns a schema with nearly all that a structural schema can have.
func structural(text string) object {
	return object{
		"type": "object", "description": text, "title": text, "required": list{"spec"},
		"externalDocs": object{"description": text, "url": "https://example.com"},
		"properties": object{
			"spec": object{"type": "object", "properties": object{
				"text":  object{"type": "string", "default": text, "enum": list{text, "other"}, "minLength": int64(1), "maxLength": int64(10), "pattern": "^[a-z]*$", "format": "password", "example": text},
				"size":  object{"type": "integer", "format": "int32", "minimum": 1.0, "maximum": 100.5, "exclusiveMinimum": true, "exclusiveMaximum": true, "multipleOf": 1.0},
				"other": object{"type": "integer", "nullable": true, "not": object{"minimum": 1.5e-7, "maximum": 1e21}},
				"items": object{
					"type": "array", "items": object{"type": "object", "required": list{"name"}, "properties": object{"name": object{"type": "string"}}}, "minItems": int64(1), "maxItems": int64(10),
					"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list{"name"},
				},
				"any":    object{"x-kubernetes-preserve-unknown-fields": true, "type": "object", "x-kubernetes-embedded-resource": true},
				"either": object{"x-kubernetes-int-or-string": true, "anyOf": list{object{"type": "integer"}, object{"type": "string"}}},
				"more":   object{"type": "object", "additionalProperties": object{"type": "string"}, "minProperties": int64(1), "maxProperties": int64(10), "x-kubernetes-map-type": "granular"},
				"few":    object{"type": "string", "allOf": list{object{"minLength": int64(1)}}, "oneOf": list{object{"maxLength": int64(2)}}},
			}, "x-kubernetes-validations": list{object{"rule": "has(self.size) || true", "message": text, "messageExpression": "'" + text + "'", "reason": "FieldValueInvalid", "fieldPath": ".size"}}},
			"status": object{"type": "object", "properties": object{"size": object{"type": "integer"}, "other": object{"type": "integer"}, "text": object{"type": "string"}, "label": object{"type": "string"}}},
		},
	}
}
