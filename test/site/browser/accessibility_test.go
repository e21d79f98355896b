package browser

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha512"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// The checker of accessibility is a package of npm, which is downloaded when it is needed, and must be this one.
const (
	axePackage   = "axe-core"
	axeVersion   = "4.11.0"
	axeIntegrity = "ilYanEU8vxxBexpJd8cWM4ElSQq4QctCLKih0TSfjIfCQTeyH/6zVrmIJfLPrKTKJRbiG+cfnZbQIjAlJmF1jQ==" // SHA-512
)

// axe returns the script of the checker, or an error if it cannot be had here.
func axe(ctx context.Context) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	folder := filepath.Join(cache, "kopf-go", "npm")
	archive := filepath.Join(folder, axePackage+"-"+axeVersion+".tgz")
	content, err := os.ReadFile(archive)
	if err != nil {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return "", err
		}
		ctx, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		pack := exec.CommandContext(ctx, "npm", "pack", axePackage+"@"+axeVersion, "--silent")
		pack.Dir = folder
		if out, err := pack.CombinedOutput(); err != nil {
			return "", fmt.Errorf("npm does not download it: %w %s", err, out)
		}
		content, err = os.ReadFile(archive)
		if err != nil {
			return "", err
		}
	}
	if sum := sha512.Sum512(content); base64.StdEncoding.EncodeToString(sum[:]) != axeIntegrity {
		return "", errors.Join(fmt.Errorf("%s is another package than expected", archive), os.Remove(archive))
	}
	unpacked, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		return "", err
	}
	for files := tar.NewReader(unpacked); ; {
		file, err := files.Next()
		if err != nil {
			return "", fmt.Errorf("the package has no script: %w", err)
		}
		if file.Name == "package/axe.min.js" {
			script, err := io.ReadAll(files)
			return string(script), err
		}
	}
}

// checkAccessibility reports what the checker finds on the page in the tab.
func checkAccessibility(t *testing.T, tab context.Context, script, name string) {
	t.Helper()
	do(t, tab, run(script+`; undefined`), run(`window.axeFound = undefined; axe.run(document, {resultTypes: ["violations"]}).then(
		(found) => { window.axePassed = found.passes.length;
			window.axeFound = found.violations.map((one) => one.id + ": " + one.help + ": " + one.nodes.map((node) => node.html).join(" ")).join("\n"); },
		(error) => { window.axeFound = "it cannot be checked: " + error; }); undefined`))
	get(t, tab, chromedp.Poll[bool](`window.axeFound !== undefined`))
	if found := evaluate[string](t, tab, `window.axeFound`); found != "" {
		t.Errorf("%s is not accessible:\n%s", name, found)
	}
	if passed := evaluate[int](t, tab, `window.axePassed ?? 0`); passed < 10 {
		t.Errorf("only %d rules were checked for %s", passed, name)
	}
}
