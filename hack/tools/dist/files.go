package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// file is a file of an archive.
type file struct {
	name    string
	program bool
	data    []byte
}

// read returns a file for an archive.
func read(path, name string, program bool) (file, error) {
	data, err := os.ReadFile(path)
	return file{name, program, data}, err
}

// folder returns the files of a folder, in the order of their names.
func folder(dir, prefix string) (files []file, err error) {
	err = fs.WalkDir(os.DirFS(dir), ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		each, err := read(filepath.Join(dir, path), prefix+path, false)
		files = append(files, each)
		return err
	})
	return files, err
}

// tarball returns a tar archive of files, which belong to root, and are as old as the commit.
func (r *release) tarball(files []file) ([]byte, error) {
	var data bytes.Buffer
	archive := tar.NewWriter(&data)
	for _, f := range files {
		mode := int64(0o644)
		if f.program {
			mode = 0o755
		}
		header := &tar.Header{Typeflag: tar.TypeReg, Name: f.name, Mode: mode, Size: int64(len(f.data)), ModTime: r.time, Format: tar.FormatUSTAR}
		if err := archive.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := archive.Write(f.data); err != nil {
			return nil, err
		}
	}
	err := archive.Close()
	return data.Bytes(), err
}

// pack returns a compressed tar archive of files.
func (r *release) pack(files []file) ([]byte, error) {
	archive, err := r.tarball(files)
	if err != nil {
		return nil, err
	}
	var data bytes.Buffer
	compressed := gzip.NewWriter(&data)
	if _, err := compressed.Write(archive); err != nil {
		return nil, err
	}
	err = compressed.Close()
	return data.Bytes(), err
}

// archive writes the archive of the command kopf for a platform.
func (r *release) archive(p platform, program string) (pluginArchive, error) {
	kopf, err := read(program, "kopf", true)
	if err != nil {
		return pluginArchive{}, err
	}
	license, err := read(filepath.Join(r.root, "LICENSE"), "LICENSE", false)
	if err != nil {
		return pluginArchive{}, err
	}
	data, err := r.pack([]file{kopf, license})
	if err != nil {
		return pluginArchive{}, err
	}
	base := fmt.Sprintf("kopf_%s_%s_%s", r.version, p.os, p.arch)
	return pluginArchive{p, base, sum(data)}, r.write(base+".tar.gz", data)
}

// write writes a file of the release.
func (r *release) write(name string, data []byte) error {
	return os.WriteFile(filepath.Join(r.out, name), data, 0o644)
}

func sum(data []byte) string {
	hash := sha256.Sum256(data)
	return hex.EncodeToString(hash[:])
}

// checksums writes the checksums of all files, as sha256sum reads them.
func (r *release) checksums() error {
	entries, err := os.ReadDir(r.out)
	if err != nil {
		return err
	}
	var lines strings.Builder
	for _, entry := range entries {
		data, err := os.ReadFile(filepath.Join(r.out, entry.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&lines, "%s  %s\n", sum(data), entry.Name())
	}
	return r.write("checksums.txt", []byte(lines.String()))
}
