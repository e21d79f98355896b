package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// platform is a pair of GOOS and GOARCH.
type platform struct{ os, arch string }

func parsePlatform(text string) (platform, error) {
	system, arch, found := strings.Cut(text, "/")
	if !found || system == "" || arch == "" {
		return platform{}, fmt.Errorf("the platform %q is none such as linux/amd64", text)
	}
	return platform{system, arch}, nil
}

// programs are the paths of the programs for a platform.
type programs struct{ kopf, manager string }

// compile builds the programs for a platform. The same sources and the same Go make the same bytes.
func (r *release) compile(ctx context.Context, p platform) (programs, error) {
	dir := filepath.Join(r.scratch, p.os+"_"+p.arch)
	built := programs{filepath.Join(dir, "kopf"), filepath.Join(dir, "manager")}
	if _, err := os.Stat(dir); err == nil {
		return built, nil
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		return programs{}, err
	}
	// The linker sets the versions, so those of git are left out: they depend on the work tree.
	symbols := fmt.Sprintf("-s -w -X main.version=%s -X github.com/kopf-go/kopf/pkg/internal/program.release=%s", r.version, r.version)
	command := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags="+symbols, "-o", dir, "./cmd/kopf", "./cmd/manager")
	command.Dir = r.root
	command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+p.os, "GOARCH="+p.arch, "GOAMD64=v1", "GOARM64=v8.0", "GOEXPERIMENT=", "GOFLAGS=-mod=readonly")
	if _, err := output(command); err != nil {
		return programs{}, fmt.Errorf("the programs for %s/%s cannot be built: %w", p.os, p.arch, err)
	}
	return built, nil
}

// deployments writes the manifests and the chart of the operator. Its own program makes them.
func (r *release) deployments(ctx context.Context, manager string) error {
	image := "--image=" + r.registry + "/kopf-manager:" + r.version
	manifests, err := r.manifests(ctx, manager, image, "--namespace=kopf-system")
	if err != nil {
		return err
	}
	if err := r.write("install.yaml", manifests); err != nil {
		return err
	}
	chart := filepath.Join(r.scratch, "chart", "kopf-manager")
	if _, err := r.manifests(ctx, manager, image, "--helm="+chart, "--version="+strings.TrimPrefix(r.version, "v")); err != nil {
		return err
	}
	files, err := folder(chart, "kopf-manager/")
	if err != nil {
		return err
	}
	packed, err := r.pack(files)
	if err != nil {
		return err
	}
	return r.write("kopf-manager-"+strings.TrimPrefix(r.version, "v")+".tgz", packed) // the name that Helm gives it
}

// manifests runs the command manifests of the operator.
func (r *release) manifests(ctx context.Context, manager string, arguments ...string) ([]byte, error) {
	arguments = append([]string{"manifests", "--crds=config/crd/kopf.dev,config/crd/example"}, arguments...)
	command := exec.CommandContext(ctx, manager, arguments...)
	command.Dir = r.root
	command.Env = []string{"KUBECONFIG=/nonexistent"} // no cluster is asked
	return output(command)
}

// commit returns the commit that is checked out, and its time.
func commit(ctx context.Context, root string) (revision string, at time.Time, err error) {
	command := exec.CommandContext(ctx, "git", "log", "-1", "--format=%H %ct")
	command.Dir = root
	text, err := output(command)
	if err != nil {
		return "", time.Time{}, err
	}
	revision, seconds, _ := strings.Cut(strings.TrimSpace(string(text)), " ")
	unix, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return "", time.Time{}, fmt.Errorf("git has printed %q instead of a commit and its time: %w", text, err)
	}
	return revision, time.Unix(unix, 0).UTC(), nil
}

// output runs a command, and returns what it prints. The error has what it says.
func output(command *exec.Cmd) ([]byte, error) {
	var says strings.Builder
	command.Stderr = &says
	text, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w\n%s", strings.Join(command.Args, " "), err, &says)
	}
	return text, nil
}
