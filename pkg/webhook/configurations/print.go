package configurations

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
)

// printManifest is for a person, where configurations are not managed.
func (m *Manager) printManifest(hooks []Hook, config admissionregistrationv1.WebhookClientConfig) error {
	text, err := Manifest(hooks, config, m.options)
	if err != nil {
		return err
	}
	manifest := string(text)
	news := manifest != m.loggedManifest
	if news {
		m.loggedManifest = manifest
		m.logger.Info("The admission configurations are not managed. The cluster needs this manifest: "+
			"apply it, and apply it again when it changes, or set settings.Admission.Managed.", m.manifestLogValues(config)...)
	}
	if m.options.ManifestFile == "" || manifest == m.writtenManifest {
		return nil
	}
	switch err := writeFileAtomically(m.options.ManifestFile, text); {
	case err == nil:
		m.writtenManifest = manifest
	case news: // it is tried again, and not said again
		m.logger.Error(err, "The manifest could not be written (settings.Admission.ManifestFile).", "manifest", manifest)
	}
	return nil // who publishes a certificate does not wait for a file
}

// manifestLogValues is where the manifest is, and how long it is good.
func (m *Manager) manifestLogValues(config admissionregistrationv1.WebhookClientConfig) []any {
	values := []any{"manifest", m.loggedManifest}
	if m.options.ManifestFile != "" {
		values = []any{"file", m.options.ManifestFile}
	}
	if len(config.CABundle) > 0 {
		values = append(values, "note", "The CA in it is good as long as the certificate of the server is. One that is generated in memory "+
			"ends with this process, and with its rotation: then API servers say \"certificate signed by unknown authority\". "+
			"For a manifest that stays, give the server CertFile, KeyFile and CAFile, or a Secret.")
	}
	return values
}

// writeFileAtomically writes a file in one piece: who reads it sees the old text or the new one.
func writeFileAtomically(path string, text []byte) error {
	file, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	_, err = file.Write(text)
	err = errors.Join(err, file.Chmod(0o644), file.Close()) // it is no secret
	if err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, errors.Join(err, os.Remove(file.Name())))
	}
	return nil
}
