package configurations

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/yaml"

	"github.com/kopf-go/kopf/internal/conversion"
)

// DefaultManifestName is the name in the manifests of operators without a name.
const DefaultManifestName = "auto.kopf.dev"

// Manifest returns both configurations in YAML, without empty ones, for a person to
// apply where configurations are not managed. Definitions belong to other manifests, so comments at the end have the
// commands that patch them.
func Manifest(hooks []Hook, conversions []*conversion.Graph, config admissionregistrationv1.WebhookClientConfig, options Options) ([]byte, error) {
	if options.Name == "" {
		options.Name = cmp.Or(options.ManifestName, DefaultManifestName)
	}
	forValidating, forMutating := Build(hooks, config, options)
	var documents [][]byte
	for _, part := range []struct {
		configuration
		webhooks []admissionregistrationv1.ValidatingWebhook
	}{
		{newValidating(options.Name), forValidating},
		{newMutating(options.Name), forMutating},
	} {
		if len(part.webhooks) == 0 {
			continue
		}
		part.setWebhooks(part.webhooks)
		document, err := yaml.Marshal(part.object())
		if err != nil {
			return nil, err
		}
		documents = append(documents, document)
	}
	text := bytes.Join(documents, []byte("---\n"))
	for _, graph := range conversions {
		patch, err := json.Marshal(map[string]any{"spec": map[string]any{"conversion": NewConversion(graph.Name, config)}})
		if err != nil {
			return nil, err
		}
		text = fmt.Appendf(text, "# The operator converts the objects of a definition, which needs this patch:\n# kubectl patch customresourcedefinition %s --type merge -p '%s'\n", graph.Name, patch)
	}
	return text, nil
}

// printManifest logs the manifest, and writes it to the file, when it changes.
func (w *writer) printManifest(hooks []Hook, conversions []*conversion.Graph, config admissionregistrationv1.WebhookClientConfig) error {
	text, err := Manifest(hooks, conversions, config, w.options)
	if err != nil {
		return err
	}
	manifest := string(text)
	isNew := manifest != w.loggedManifest
	if isNew {
		w.loggedManifest = manifest
		values := []any{"manifest", manifest}
		if w.options.ManifestFile != "" {
			values = []any{"file", w.options.ManifestFile}
		}
		if len(config.CABundle) > 0 {
			values = append(values, "note", "The CA in the manifest is valid as long as the certificate of the server. A certificate that is generated in memory "+
				"changes with every start and every rotation: then API servers report \"certificate signed by unknown authority\". "+
				"For a manifest that stays valid, set CertFile, KeyFile and CAFile of the server, or a Secret.")
		}
		w.logger.Info("The admission configurations are not managed. The cluster needs this manifest: "+
			"apply it, and apply it again when it changes, or set Settings.Admission.Managed.", values...)
	}
	if w.options.ManifestFile == "" || manifest == w.writtenManifest {
		return nil
	}
	switch err := writeFileAtomically(w.options.ManifestFile, text); {
	case err == nil:
		w.writtenManifest = manifest
	case isNew: // it is tried again, but not logged again
		w.logger.Error(err, "The manifest could not be written to Settings.Admission.ManifestFile.", "manifest", manifest)
	}
	return nil // a new certificate does not wait for the file
}

// writeFileAtomically replaces a file: a reader sees either the old or the new content.
func writeFileAtomically(path string, content []byte) error {
	file, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	err = errors.Join(err, file.Chmod(0o644), file.Close()) // manifests are not secret
	if err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, errors.Join(err, os.Remove(file.Name())))
	}
	return nil
}
