package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"debug/buildinfo"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	cdx "github.com/CycloneDX/cyclonedx-go"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/validate"
	"sigs.k8s.io/krew/pkg/index"
	"sigs.k8s.io/yaml"
)

const version = "v1.2.3"

// platforms are the ones that the test builds for: this one, which can run what is built, and one that has images.
func platforms() []string {
	here := runtime.GOOS + "/" + runtime.GOARCH
	if runtime.GOOS == "linux" {
		return []string{here}
	}
	return []string{here, "linux/" + runtime.GOARCH}
}

func build(t *testing.T, root string) (dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "dist")
	if err := run(t.Context(), []string{"-root=" + root, "-out=" + dir, "-version=" + version, "-platforms=" + strings.Join(platforms(), ",")}); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestRelease builds a release, and uses what is in it.
func TestRelease(t *testing.T) {
	root := filepath.Join("..", "..", "..")
	dir := build(t, root)
	t.Run("the same in another folder", func(t *testing.T) { expectEqual(t, dir, build(t, elsewhere(t, root))) })
	t.Run("checksums", func(t *testing.T) { checkSums(t, dir) })
	t.Run("programs", func(t *testing.T) { checkPrograms(t, dir) })
	t.Run("images", func(t *testing.T) { checkImages(t, dir) })
	t.Run("plugin", func(t *testing.T) { checkPlugin(t, dir) })
	t.Run("deployments", func(t *testing.T) { checkDeployments(t, dir) })
}

// elsewhere returns a copy of the sources, as they are, at the same commit.
func elsewhere(t *testing.T, root string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for _, name := range strings.Split(strings.TrimRight(gitOutput(t, root, "ls-files", "-z", "--cached", "--others", "--exclude-standard"), "\x00"), "\x00") {
		info, err := os.Stat(filepath.Join(root, name))
		if errors.Is(err, os.ErrNotExist) || err == nil && info.IsDir() {
			continue // it is deleted, but not committed, or a link to a folder of an example
		}
		data := contents(t, root, name)
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	repository := strings.TrimSpace(gitOutput(t, root, "rev-parse", "--absolute-git-dir"))
	if err := os.WriteFile(filepath.Join(dir, ".git"), []byte("gitdir: "+repository+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

func gitOutput(t *testing.T, root string, arguments ...string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), "git", arguments...)
	command.Dir = root
	text, err := output(command)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// files returns the names of the files of a release.
func files(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}

func contents(t *testing.T, path ...string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func expectEqual(t *testing.T, one, other string) {
	t.Helper()
	names := files(t, one)
	if others := files(t, other); !slices.Equal(names, others) {
		t.Errorf("got %q and %q", names, others)
	}
	for _, name := range names {
		if !bytes.Equal(contents(t, one, name), contents(t, other, name)) {
			t.Errorf("%s differs", name)
		}
	}
}

// checkSums expects a checksum for every file.
func checkSums(t *testing.T, dir string) {
	t.Helper()
	var summed []string
	for line := range strings.Lines(string(contents(t, dir, "checksums.txt"))) {
		want, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		summed = append(summed, name)
		if got := sum(contents(t, dir, name)); got != want {
			t.Errorf("%s has the checksum %s, want %s", name, got, want)
		}
	}
	all := slices.DeleteFunc(files(t, dir), func(name string) bool { return name == "checksums.txt" })
	if !slices.Equal(summed, all) {
		t.Errorf("there are checksums of %q, want %q", summed, all)
	}
}

// unpack returns the files of a tar archive.
func unpack(t *testing.T, archive io.Reader) map[string][]byte {
	t.Helper()
	found := map[string][]byte{}
	for entries := tar.NewReader(archive); ; {
		header, err := entries.Next()
		if errors.Is(err, io.EOF) {
			return found
		}
		if err != nil {
			t.Fatal(err)
		}
		if found[header.Name], err = io.ReadAll(entries); err != nil {
			t.Fatal(err)
		}
		if header.Uid != 0 || header.Gid != 0 || header.Mode&0o022 != 0 {
			t.Errorf("%s belongs to %d:%d, and has the mode %o", header.Name, header.Uid, header.Gid, header.Mode)
		}
	}
}

func unzip(t *testing.T, data []byte) io.Reader {
	t.Helper()
	plain, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	return plain
}

// starts runs the command version of a program of the release.
func starts(t *testing.T, program []byte) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(path, program, 0o700); err != nil {
		t.Fatal(err)
	}
	text, err := output(exec.CommandContext(t.Context(), path, "version"))
	if err != nil || !strings.Contains(string(text), version) {
		t.Errorf("got %q, %v", text, err)
	}
	return path
}

func checkPrograms(t *testing.T, dir string) {
	t.Helper()
	base := strings.Join([]string{"kopf", version, runtime.GOOS, runtime.GOARCH}, "_")
	unpacked := unpack(t, unzip(t, contents(t, dir, base+".tar.gz")))
	if len(unpacked["LICENSE"]) == 0 || len(unpacked) != 2 {
		t.Errorf("the archive has %d files, want the program and LICENSE", len(unpacked))
	}
	checkBill(t, contents(t, dir, base+".cdx.json"), starts(t, unpacked["kopf"]))
}

// checkBill expects all modules of a program in a bill of materials.
func checkBill(t *testing.T, data []byte, program string) {
	t.Helper()
	bom := &cdx.BOM{}
	if err := cdx.NewBOMDecoder(bytes.NewReader(data), cdx.BOMFileFormatJSON).Decode(bom); err != nil {
		t.Fatal(err)
	}
	if main := bom.Metadata.Component; main.Version != version || main.Type != cdx.ComponentTypeApplication {
		t.Errorf("the bill is about %s %s", main.Name, main.Version)
	}
	var listed []string
	for _, component := range *bom.Components {
		listed = append(listed, component.Name+" "+component.Version)
	}
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	for _, module := range info.Deps {
		if !slices.Contains(listed, module.Path+" "+module.Version) {
			t.Errorf("the bill lacks %s %s", module.Path, module.Version)
		}
	}
	if len(info.Deps) == 0 || len(listed) != len(info.Deps)+1 || !slices.ContainsFunc(listed, func(name string) bool { return strings.HasPrefix(name, "std ") }) {
		t.Errorf("got %d components, want %d modules and the standard library", len(listed), len(info.Deps))
	}
}

// checkImages unpacks the images, and runs their programs.
func checkImages(t *testing.T, dir string) {
	t.Helper()
	for _, name := range []string{"kopf", "kopf-manager"} {
		unpacked := t.TempDir()
		for path, data := range unpack(t, bytes.NewReader(contents(t, dir, name+"_"+version+"_oci.tar"))) {
			if err := os.MkdirAll(filepath.Join(unpacked, filepath.Dir(path)), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(unpacked, path), data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		tagged, err := layout.ImageIndexFromPath(unpacked)
		if err != nil {
			t.Fatal(err)
		}
		if err := validate.Index(tagged); err != nil { // all digests and sizes
			t.Errorf("%s: %v", name, err)
		}
		manifest, err := tagged.IndexManifest()
		if err != nil || len(manifest.Manifests) != 1 || manifest.Manifests[0].Annotations["org.opencontainers.image.ref.name"] != version {
			t.Fatalf("%s: got %+v, %v", name, manifest, err)
		}
		all, err := tagged.ImageIndex(manifest.Manifests[0].Digest)
		if err != nil {
			t.Fatal(err)
		}
		checkImage(t, all)
	}
}

// checkImage expects an image for the architecture of this machine, whose program starts where this is Linux.
func checkImage(t *testing.T, all v1.ImageIndex) {
	t.Helper()
	manifest, err := all.IndexManifest()
	if err != nil || len(manifest.Manifests) != 1 {
		t.Fatalf("got %+v, %v", manifest, err)
	}
	if p := manifest.Manifests[0].Platform; p.OS != "linux" || p.Architecture != runtime.GOARCH {
		t.Errorf("it is for %s", p)
	}
	image, err := all.Image(manifest.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	layers, err := image.Layers()
	if err != nil || len(layers) != 1 {
		t.Fatalf("got %d layers, %v", len(layers), err)
	}
	plain, err := layers[0].Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	inside := unpack(t, plain)
	program, found := inside[strings.TrimPrefix(config.Config.Entrypoint[0], "/")]
	if !found || len(inside) != 1 || config.Config.User != "65532:65532" || config.Config.Labels["org.opencontainers.image.version"] != "1.2.3" {
		t.Errorf("got %d files and %+v", len(inside), config.Config)
	}
	if runtime.GOOS == "linux" {
		starts(t, program)
	}
}

// checkPlugin expects a manifest that Krew reads, with the checksums of the archives.
func checkPlugin(t *testing.T, dir string) {
	t.Helper()
	plugin := &index.Plugin{}
	if err := yaml.UnmarshalStrict(contents(t, dir, "kopf.yaml"), plugin); err != nil {
		t.Fatal(err)
	}
	if plugin.Name != "kopf" || plugin.Spec.Version != version || len(plugin.Spec.Platforms) != len(platforms()) {
		t.Errorf("got %+v", plugin)
	}
	for _, p := range plugin.Spec.Platforms {
		file := p.URI[strings.LastIndex(p.URI, "/")+1:]
		data := contents(t, dir, file)
		if p.Sha256 != sum(data) || unpack(t, unzip(t, data))[p.Bin] == nil {
			t.Errorf("the platform %+v does not fit %s", p, file)
		}
	}
}

// checkDeployments expects the image of the release in the manifests and in the chart. Other tests apply both.
func checkDeployments(t *testing.T, dir string) {
	t.Helper()
	image := "registry.example.com/kopf-manager:" + version
	if text := string(contents(t, dir, "install.yaml")); !strings.Contains(text, "image: "+image+"\n") || strings.Count(text, "kind: CustomResourceDefinition") != 3 {
		t.Errorf("got the manifests %s", text)
	}
	chart := unpack(t, unzip(t, contents(t, dir, "kopf-manager-1.2.3.tgz")))
	about := map[string]any{}
	if err := yaml.Unmarshal(chart["kopf-manager/Chart.yaml"], &about); err != nil {
		t.Fatal(err)
	}
	if about["name"] != "kopf-manager" || about["version"] != "1.2.3" {
		t.Errorf("the chart is %v", about)
	}
	values := map[string]any{}
	if err := yaml.Unmarshal(chart["kopf-manager/values.yaml"], &values); err != nil || values["image"] != image {
		t.Errorf("got the values %v, %v", values, err)
	}
}

// Mistakes are found before anything is built.
func TestMistakes(t *testing.T) {
	full := t.TempDir()
	if err := os.WriteFile(filepath.Join(full, "old.tar.gz"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		arguments []string
		want      string
	}{
		"no version":       {nil, `the version "" is none such as v1.2.3`},
		"half a version":   {[]string{"-version=v1.2"}, `the version "v1.2" is none`},
		"a wrong platform": {[]string{"-version=v1.2.3", "-platforms=linux"}, `the platform "linux" is none such as linux/amd64`},
		"a full folder":    {[]string{"-version=v1.2.3", "-out=" + full}, "must be empty"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := run(t.Context(), test.arguments); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}
