//go:build unix

package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/onsi/gomega"

	"github.com/kopf-go/kopf/hack/dev/picture"
	"github.com/kopf-go/kopf/hack/envtest/assets"
	"github.com/kopf-go/kopf/hack/source"
)

// The picture in README.md shows a run of the first example up to its last event. Its
// text is stored beside it, with the lines in the order of the run that was drawn.
const (
	pictureTitle   = "make run"
	updateVariable = "KOPF_UPDATE_GOLDEN"
)

// lastTexts are in the last lines of such a run, whose order varies.
var lastTexts = []string{"IS HANDLED", "event Normal Logging", "event Normal HandlerSucceeded", "event Normal CycleFinished", "The creation is processed: 1 succeeded; 0 failed.\t"}

// TestThePictureShowsARealRun compares the text of the picture with a run, and the picture
// with its text. With KOPF_UPDATE_GOLDEN=1 (make picture), it renews both.
func TestThePictureShowsARealRun(t *testing.T) {
	g := gomega.NewWithT(t)
	root, err := assets.Root()
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(source.Inputs(filepath.Join(root, "pkg"), filepath.Join(root, "examples", "01-minimal"))).To(gomega.Succeed())
	images := filepath.Join(root, "docs", "images")
	textFile, drawingFile := filepath.Join(images, "run.txt"), filepath.Join(images, "run.svg")
	update := os.Getenv(updateVariable) != ""
	shown := "$ make run\n" + runForPicture(t, root)

	stored, err := os.ReadFile(textFile)
	if update && (err != nil || !picture.SameLines(string(stored), shown)) {
		stored, err = []byte(shown), os.WriteFile(textFile, []byte(shown), 0o600)
	}
	g.Expect(err).NotTo(gomega.HaveOccurred())
	if !picture.SameLines(string(stored), shown) {
		t.Errorf("docs/images/run.txt is out of date: run make picture. It has\n%s\nbut this run had\n%s", stored, shown)
	}

	want := picture.SVG(pictureTitle, string(stored))
	if update {
		g.Expect(os.WriteFile(drawingFile, []byte(want), 0o600)).To(gomega.Succeed())
	}
	drawing, err := os.ReadFile(drawingFile)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	if string(drawing) != want {
		t.Error("docs/images/run.svg does not show docs/images/run.txt: run make picture")
	}
}

// runForPicture runs the first example until its last event has arrived, and returns what
// the terminal showed.
func runForPicture(t *testing.T, root string) string {
	t.Helper()
	g := gomega.NewWithT(t)
	isolate(t)
	for _, variable := range os.Environ() {
		if name, _, _ := strings.Cut(variable, "="); strings.HasPrefix(name, "KOPF_") {
			t.Setenv(name, "") // restores it in the end
			g.Expect(os.Unsetenv(name)).To(gomega.Succeed())
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	terminal := &terminal{}
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, options{cluster: temporary, example: "01-minimal"}, newConsole(terminal)) }()

	for _, text := range lastTexts {
		g.Eventually(terminal.String, patience).Should(gomega.ContainSubstring(text))
	}
	output := terminal.String()
	cancel()
	g.Expect(<-ended).To(gomega.Succeed())
	return picture.Normalize(output, map[string]string{root: "~/kopf", strings.TrimSuffix(os.Getenv("XDG_CACHE_HOME"), "/"): "~/.cache"})
}
