package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// diagrams is the folder with the drawn diagrams. The name of a file is the hash of its
// source, so that no page shows an old diagram; the layout of the code blocks looks it up.
const diagrams = theme + "/assets/diagrams"

// drawn matches the source of a diagram.
var drawn = regexp.MustCompile("(?ms)^```mermaid\n(.*?)^```$") //nolint:gocritic // with (?m), every ^ matches

// diagramName returns the name of the file of a diagram.
func diagramName(source string) string {
	return fmt.Sprintf("%x", sha256.Sum256([]byte(strings.TrimSpace(source))))[:16]
}

// drawDiagrams draws all diagrams of the pages that are not drawn yet, and removes those
// that no page has any longer. It needs npm and Chromium, and the site does not.
func drawDiagrams(ctx context.Context, root string) (err error) {
	pages, err := collect(os.DirFS(root))
	if err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "diagrams")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	wanted := map[string]bool{}
	for _, one := range pages {
		for _, source := range drawn.FindAllStringSubmatch(one.text, -1) {
			wanted[diagramName(source[1])+".svg"] = true
			if err := draw(ctx, work, filepath.Join(root, diagrams), source[1]); err != nil {
				return fmt.Errorf("%s: %w", one.path, err)
			}
		}
	}
	existing, err := filepath.Glob(filepath.Join(root, diagrams, "*.svg"))
	for _, file := range existing {
		if !wanted[filepath.Base(file)] {
			err = errors.Join(err, os.Remove(file))
		}
	}
	return err
}

// draw writes one diagram, unless it exists.
func draw(ctx context.Context, work, dir, source string) error {
	name := diagramName(source)
	out := filepath.Join(dir, name+".svg")
	if _, err := os.Stat(out); err == nil {
		return nil
	}
	err := errors.Join(
		write(work, "diagram.mmd", source),
		write(work, "mermaid.json", `{"theme": "neutral", "fontFamily": "sans-serif", "flowchart": {"htmlLabels": false}}`),
		write(work, "puppeteer.json", `{"executablePath": "/usr/bin/chromium", "args": ["--no-sandbox"]}`),
	)
	if err != nil {
		return err
	}
	cmd := command(ctx, work, "npx", "--yes", "--loglevel=error", "--package=@mermaid-js/mermaid-cli@12", "mmdc", "--quiet", "--input=diagram.mmd", "--output="+out,
		"--configFile=mermaid.json", "--puppeteerConfigFile=puppeteer.json", "--backgroundColor=transparent", "--svgId=diagram-"+name)
	cmd.Env = append(os.Environ(), "PUPPETEER_SKIP_DOWNLOAD=1")
	return cmd.Run()
}
