package login

import (
	"encoding/json"
	"hash/maphash"
	"math/rand/v2"
	"os"
	"reflect"

	"k8s.io/client-go/rest"
)

// fingerprint identifies credentials without storing them. It includes the current
// content of files: the same file can contain other credentials later. Credentials in
// functions cannot be compared and differ each time.
func fingerprint(seed maphash.Seed, config *rest.Config) (uint64, error) {
	config = rest.CopyConfig(config)
	if err := rest.LoadTLSFiles(config); err != nil {
		return 0, err
	}
	token, err := tokenOf(config)
	if err != nil {
		return 0, err
	}
	if config.WrapTransport != nil || !reflect.ValueOf(&config.Transport).Elem().Comparable() {
		return rand.Uint64(), nil
	}
	text, err := json.Marshal([]any{
		config.Host, config.Username, config.Password, token, config.Impersonate,
		config.AuthProvider, config.ExecProvider,
		config.ServerName, config.CAData, config.CertData, config.KeyData,
	})
	if err != nil {
		return rand.Uint64(), nil //nolint:nilerr // what cannot be encoded cannot be compared
	}
	return maphash.Bytes(seed, text) ^ maphash.Comparable(seed, config.Transport), nil
}

// tokenOf returns the token that the configuration uses, preferably from its file.
func tokenOf(config *rest.Config) (string, error) {
	if config.BearerTokenFile == "" {
		return config.BearerToken, nil
	}
	token, err := os.ReadFile(config.BearerTokenFile)
	if err != nil && config.BearerToken != "" {
		return config.BearerToken, nil
	}
	return string(token), err
}
