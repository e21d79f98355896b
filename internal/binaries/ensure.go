package binaries

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

// Cached returns the directory of the cache with the programs of exactly these versions, or
// ErrMissing, with the directory, if they are not built.
func Cached(pins Pins) (string, error) {
	pinned, err := pins.versions()
	if err != nil {
		return "", err
	}
	base, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("no cache directory for kube-apiserver and etcd: %w", err)
	}
	dir := filepath.Join(builtIn(base), pinned.dir())
	if missingIn(dir) != "" {
		return dir, fmt.Errorf("%w: not in %s", ErrMissing, dir)
	}
	return dir, nil
}

// Build returns the directory of the cache with the programs of exactly these versions, and
// builds what is missing there. As this takes minutes on a new machine, it writes a line to
// progress every few seconds. Canceling the context stops the build and leaves no incomplete
// files; what is compiled by then stays in the cache of the go command.
func Build(ctx context.Context, pins Pins, progress io.Writer) (string, error) {
	dir, err := Cached(pins)
	if !errors.Is(err, ErrMissing) {
		return dir, err
	}
	return dir, buildMissing(ctx, pins, dir, programs, progress)
}

// buildMissing builds the programs that are not in dir. After waiting for the lock,
// there may be nothing left to build.
func buildMissing(ctx context.Context, pins Pins, dir string, programs func(versions) []program, progress io.Writer) error {
	pinned, err := pins.versions()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	unlock, err := lock(ctx, filepath.Join(dir, ".lock"), progress)
	if err != nil {
		return err
	}
	defer unlock()
	scratch, err := os.MkdirTemp(filepath.Dir(dir), ".build-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(scratch) }()
	module := filepath.Join(scratch, "module")
	if err := pins.write(module); err != nil {
		return err
	}
	for _, p := range programs(pinned) {
		if isExecutable(filepath.Join(dir, p.name)) {
			continue
		}
		if err := p.build(ctx, module, scratch, progress); err != nil {
			return err
		}
		if err := os.Rename(filepath.Join(scratch, p.name), filepath.Join(dir, p.name)); err != nil {
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
	_, _ = fmt.Fprintf(progress, "Kubernetes for tests: "+format+"\n", args...)
}

func seconds(d time.Duration) string { return fmt.Sprintf("%d s", int(d.Seconds())) }
