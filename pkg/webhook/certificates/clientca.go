package certificates

import (
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// ClientCAs returns the CAs by which a server verifies its clients: from a PEM file,
// from all files of a directory, and from PEM data. It returns nil if none is given.
func ClientCAs(file, directory string, data []byte) (*x509.CertPool, error) {
	if file == "" && directory == "" && len(data) == 0 {
		return nil, nil //nolint:nilnil // not to verify clients is no error
	}
	contents, err := readFiles(file, directory)
	if err != nil {
		return nil, fmt.Errorf("the CAs for the clients of the admission server: %w", err)
	}
	pool := x509.NewCertPool()
	found := false
	for _, content := range append(contents, data) {
		found = pool.AppendCertsFromPEM(content) || found
	}
	if !found {
		return nil, errors.New("the CAs for the clients of the admission server: no certificate was found")
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

// filesIn returns the files of a directory, including links to files, as a mounted
// Secret has them.
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
