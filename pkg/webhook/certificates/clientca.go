package certificates

import (
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// ClientCAs are the CAs by which a server verifies its clients: from a PEM file, from
// all files of a directory, or given as such. It is nil if nothing is given.
func ClientCAs(file, directory string, data []byte) (*x509.CertPool, error) {
	if file == "" && directory == "" && len(data) == 0 {
		return nil, nil //nolint:nilnil // clients are not verified, which is no error
	}
	contents, err := readFiles(file, directory)
	if err != nil {
		return nil, fmt.Errorf("the CAs of the clients of the admission server: %w", err)
	}
	pool, found := x509.NewCertPool(), false
	for _, content := range append(contents, data) {
		found = pool.AppendCertsFromPEM(content) || found
	}
	if !found {
		return nil, errors.New("the CAs of the clients of the admission server: there is no certificate in what was given")
	}
	return pool, nil
}

func readFiles(file, directory string) (contents [][]byte, err error) {
	var names []string
	if file != "" {
		names = append(names, file)
	}
	if directory != "" {
		found, err := filesIn(directory)
		if err != nil {
			return nil, err
		}
		names = append(names, found...)
	}
	for _, name := range names {
		content, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		contents = append(contents, content)
	}
	return contents, nil
}

// filesIn are the files of a directory. Those of a mounted Secret are links.
func filesIn(directory string) ([]string, error) {
	entries, err := os.ReadDir(directory)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, entry := range entries {
		name := filepath.Join(directory, entry.Name())
		if info, err := os.Stat(name); err == nil && info.Mode().IsRegular() {
			names = append(names, name)
		}
	}
	return names, nil
}
