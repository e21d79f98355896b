package assets

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

// tick is the interval of progress reports.
const tick = 5 * time.Second

// Ensure returns the directory that Find returns, and builds missing binaries first. As
// this takes minutes on a new machine, it writes a line to progress every few seconds.
// Canceling the context stops the build and leaves no incomplete files.
func Ensure(ctx context.Context, progress io.Writer) (string, error) {
	dir, err := Find()
	if !errors.Is(err, ErrMissing) {
		return dir, err
	}
	return EnsureRelease(ctx, Newest, progress)
}

// EnsureRelease is like Ensure, but for the given release, whatever KUBEBUILDER_ASSETS
// names.
func EnsureRelease(ctx context.Context, release Release, progress io.Writer) (string, error) {
	dir, pinned, err := cache(release)
	if err != nil || complete(dir) {
		return dir, err
	}
	if named := os.Getenv(Variable); named != "" && release == Newest {
		say(progress, "%s=%s does not contain kube-apiserver and etcd, using %s", Variable, named, dir)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	unlock, err := lock(ctx, filepath.Join(dir, ".lock"), progress)
	if err != nil {
		return "", err
	}
	defer unlock()
	return dir, buildMissing(ctx, release, dir, binaries(pinned), progress)
}

// buildMissing builds the binaries that are not in dir. After waiting for the lock,
// there may be nothing left to build.
func buildMissing(ctx context.Context, release Release, dir string, wanted []binary, progress io.Writer) error {
	root, err := Root()
	if err != nil {
		return err
	}
	scratch, err := os.MkdirTemp(filepath.Dir(dir), ".build-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(scratch) }()

	for _, b := range wanted {
		if isExecutable(filepath.Join(dir, b.name)) {
			continue
		}
		if err := b.build(ctx, release.module(root), scratch, progress); err != nil {
			return err
		}
		if err := os.Rename(filepath.Join(scratch, b.name), filepath.Join(dir, b.name)); err != nil {
			return err
		}
	}
	return nil
}

// lock waits until this run may build, and reports that it waits.
func lock(ctx context.Context, path string, progress io.Writer) (func(), error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	for next := tick; !tryLock(file); {
		if waited := time.Since(began); waited >= next {
			say(progress, "waiting for another run that is building: %s", seconds(waited))
			next += tick
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(ctx.Err(), file.Close())
		case <-time.After(tick / 10):
		}
	}
	return func() { _ = file.Close() }, nil
}

func say(progress io.Writer, format string, args ...any) {
	_, _ = fmt.Fprintf(progress, "envtest-assets: "+format+"\n", args...)
}

func seconds(d time.Duration) string { return fmt.Sprintf("%d s", int(d.Seconds())) }
