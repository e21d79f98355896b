package main

import (
	"bytes"
	"fmt"

	cdx "github.com/CycloneDX/cyclonedx-go"
	"github.com/CycloneDX/cyclonedx-gomod/pkg/generate/bin"
	"github.com/rs/zerolog"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/krew/pkg/index"
	"sigs.k8s.io/yaml"
)

// home is where the project and its releases are.
const home = "github.com/kopf-go/kopf"

// pluginArchive is the archive of the command kopf for a platform.
type pluginArchive struct {
	platform

	base   string // the name without .tar.gz
	sha256 string
}

// bill writes the software bill of materials of a program, in the format CycloneDX: all modules that are in it.
func (r *release) bill(program, base string) error {
	generator, err := bin.NewGenerator(program, bin.WithVersionOverride(r.version), bin.WithLogger(zerolog.Nop()), bin.WithIncludeStdlib(true))
	if err != nil {
		return err
	}
	bom, err := generator.Generate()
	if err != nil {
		return fmt.Errorf("the bill of materials of %s: %w", base, err)
	}
	var data bytes.Buffer
	if err := cdx.NewBOMEncoder(&data, cdx.BOMFileFormatJSON).SetPretty(true).Encode(bom); err != nil {
		return err
	}
	return r.write(base+".cdx.json", data.Bytes())
}

// krew writes the manifest of the plugin for kubectl. Krew calls the program kubectl-kopf.
func (r *release) krew(archives []pluginArchive) error {
	plugin := &index.Plugin{
		TypeMeta:   metav1.TypeMeta{APIVersion: "krew.googlecontainertools.github.com/v1alpha2", Kind: "Plugin"},
		ObjectMeta: metav1.ObjectMeta{Name: "kopf"},
		Spec: index.PluginSpec{
			Version: r.version, Homepage: "https://" + home,
			ShortDescription: "Explain, pause, and repair operators",
			Description:      "Shows what operators written with Kopf's handlers for Go have done and will do with an object, pauses and\nresumes operators, and asks them to retry, skip, or rerun handlers.\n",
		},
	}
	for _, a := range archives {
		plugin.Spec.Platforms = append(plugin.Spec.Platforms, index.Platform{
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"os": a.os, "arch": a.arch}},
			URI:      fmt.Sprintf("https://%s/releases/download/%s/%s.tar.gz", home, r.version, a.base),
			Sha256:   a.sha256, Bin: "kopf",
		})
	}
	data, err := yaml.Marshal(plugin)
	if err != nil {
		return err
	}
	return r.write("kopf.yaml", data)
}
