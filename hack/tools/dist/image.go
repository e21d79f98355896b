package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// imageProgram is the program of an image for a platform.
type imageProgram struct {
	platform

	path string
}

// image writes an image for all platforms as an archive of an OCI layout, which skopeo, crane, podman and ctr read. It has
// the program and nothing else: no shell, no package manager, no base image that must be followed.
func (r *release) image(name string, programs []imageProgram) error {
	dir := filepath.Join(r.scratch, name)
	index, err := layout.Write(dir, empty.Index)
	if err != nil {
		return err
	}
	var all v1.ImageIndex = mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, p := range programs {
		one, err := r.imageFor(name, p)
		if err != nil {
			return fmt.Errorf("the image %s for %s/%s: %w", name, p.os, p.arch, err)
		}
		all = mutate.AppendManifests(all, mutate.IndexAddendum{
			Add: one, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: p.os, Architecture: p.arch}},
		})
	}
	err = index.AppendIndex(all, layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": r.version}))
	if err != nil {
		return err
	}
	files, err := folder(dir, "")
	if err != nil {
		return err
	}
	archive, err := r.tarball(files)
	if err != nil {
		return err
	}
	return r.write(fmt.Sprintf("%s_%s_oci.tar", name, r.version), archive)
}

// imageFor returns the image for a platform. The user is a number, so that Kubernetes can verify that it is not root.
func (r *release) imageFor(name string, p imageProgram) (v1.Image, error) {
	program := filepath.Base(p.path)
	binary, err := os.ReadFile(p.path)
	if err != nil {
		return nil, err
	}
	files, err := r.tarball([]file{{program, true, binary}})
	if err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(files)), nil }, tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, err
	}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	image, err = mutate.Append(image, mutate.Addendum{
		Layer: layer, MediaType: types.OCILayer,
		History: v1.History{Created: v1.Time{Time: r.time}, CreatedBy: "COPY " + program + " /" + program},
	})
	if err != nil {
		return nil, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = p.os, p.arch
	config.Created = v1.Time{Time: r.time}
	config.Config = v1.Config{
		User: "65532:65532", Entrypoint: []string{"/" + program}, WorkingDir: "/",
		Labels: map[string]string{
			"org.opencontainers.image.title":    name,
			"org.opencontainers.image.version":  strings.TrimPrefix(r.version, "v"),
			"org.opencontainers.image.revision": r.revision,
			"org.opencontainers.image.source":   "https://" + home,
			"org.opencontainers.image.licenses": "MIT",
		},
	}
	return mutate.ConfigFile(image, config)
}
