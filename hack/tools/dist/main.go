// Command dist builds everything that a release has, in a folder: programs for the platforms of people, the plugin for
// kubectl as Krew wants it, the images of the operator and of the command kopf, its manifests and its chart, software bills
// of materials, and the checksums of all these files. A second run makes the same bytes: nothing depends on the time, the
// folder, or the machine, except for the version of Go.
//
//	sources ─┬─ go build ─┬─ archives ─── manifest of Krew
//	         │            ├─ images (OCI layouts)
//	         │            ├─ bills of materials
//	         │            └─ manager manifests ─┬─ install.yaml
//	         │                                  └─ chart
//	         └─ git: the time of the commit        checksums of all
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"golang.org/x/mod/semver"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "dist:", err)
		os.Exit(1)
	}
}

// release is what is built.
type release struct {
	root      string // of the repository
	out       string // the folder of the files
	scratch   string
	version   string // v1.2.3
	registry  string // of the images
	platforms []platform
	time      time.Time // of the commit: that of all files
	revision  string    // the commit
}

// run builds the release that the arguments describe.
func run(ctx context.Context, arguments []string) error {
	r := &release{}
	var platforms string
	flags := flag.NewFlagSet("dist", flag.ContinueOnError)
	flags.StringVar(&r.root, "root", "../../..", "the `folder` of the repository")
	flags.StringVar(&r.out, "out", "", "the `folder` of the files: it must be empty, or not exist")
	flags.StringVar(&r.version, "version", "", "the `version`, such as v1.2.3")
	flags.StringVar(&r.registry, "registry", "registry.example.com", "the `registry` of the images in the manifests and in the chart")
	flags.StringVar(&platforms, "platforms", "linux/amd64,linux/arm64,darwin/amd64,darwin/arm64", "the platforms of the programs; those with linux are those of the images")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	if !semver.IsValid(r.version) || semver.Canonical(r.version) != r.version {
		return fmt.Errorf("the version %q is none such as v1.2.3 or v1.2.3-rc.1", r.version)
	}
	for _, each := range strings.Split(platforms, ",") {
		p, err := parsePlatform(each)
		if err != nil {
			return err
		}
		r.platforms = append(r.platforms, p)
	}
	if err := r.prepare(ctx); err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(r.scratch) }()
	return r.build(ctx)
}

// prepare finds out about the commit, and makes the folders.
func (r *release) prepare(ctx context.Context) (err error) {
	if r.root, err = filepath.Abs(r.root); err != nil {
		return err
	}
	if r.out, err = filepath.Abs(r.out); err != nil {
		return err
	}
	if err := os.MkdirAll(r.out, 0o755); err != nil {
		return err
	}
	present, err := os.ReadDir(r.out)
	if err != nil {
		return err
	}
	if len(present) > 0 {
		return fmt.Errorf("the folder %s must be empty, because all files in it become a part of the release: remove %s", r.out, present[0].Name())
	}
	if r.scratch, err = os.MkdirTemp("", "dist-"); err != nil {
		return err
	}
	r.revision, r.time, err = commit(ctx, r.root)
	return err
}

// build makes all files. The checksums come last.
func (r *release) build(ctx context.Context) error {
	here := platform{runtime.GOOS, runtime.GOARCH}
	programs, err := r.compile(ctx, here)
	if err != nil {
		return err
	}
	if err := r.deployments(ctx, programs.manager); err != nil {
		return err
	}
	var plugin []pluginArchive
	images := map[string][]imageProgram{}
	for _, p := range r.platforms {
		programs, err := r.compile(ctx, p)
		if err != nil {
			return err
		}
		archive, err := r.archive(p, programs.kopf)
		if err != nil {
			return err
		}
		plugin = append(plugin, archive)
		if err := r.bill(programs.kopf, archive.base); err != nil {
			return err
		}
		if p.os != "linux" {
			continue
		}
		for name, program := range map[string]string{"kopf": programs.kopf, "kopf-manager": programs.manager} {
			images[name] = append(images[name], imageProgram{p, program})
		}
		if err := r.bill(programs.manager, fmt.Sprintf("kopf-manager_%s_%s_%s", r.version, p.os, p.arch)); err != nil {
			return err
		}
	}
	for name, programs := range images {
		if err := r.image(name, programs); err != nil {
			return err
		}
	}
	if err := r.krew(plugin); err != nil {
		return err
	}
	return r.checksums()
}
