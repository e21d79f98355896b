package login

import (
	"encoding/json"
	"hash/maphash"
	"math/rand/v2"
	"os"
	"reflect"

	"k8s.io/client-go/rest"
)

// fingerprint recognises credentials that are returned again, without keeping them.
// What is in files counts as it is now: the same file can have other credentials
// later. Those inside of functions cannot be compared, and are new each time.
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
		return rand.Uint64(), nil //nolint:nilerr // what cannot be written cannot be compared
	}
	return maphash.Bytes(seed, text) ^ maphash.Comparable(seed, config.Transport), nil
}

// tokenOf is the token that the configuration uses: that of the file, if it has one.
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
