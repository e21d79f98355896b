package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestVersionsComeFromTags(t *testing.T) {
	root := t.TempDir()
	write := func(text string) {
		if err := os.WriteFile(filepath.Join(root, "README.md"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	call := func(args ...string) {
		if _, err := git(t.Context(), root, append([]string{"-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false"}, args...)...); err != nil {
			t.Fatal(err)
		}
	}
	write("# Released")
	for _, args := range [][]string{{"init", "-q"}, {"add", "."}, {"commit", "-q", "-m", "a"}, {"tag", "v1.2.3"}, {"tag", "vague"}} {
		call(args...)
	}
	write("# Changed")

	got, err := selectVersions(t.Context(), root, "all")
	if err != nil || !slices.Equal(got, []string{"v1.2.3", "main"}) {
		t.Errorf("got %q, %v", got, err)
	}
	for _, name := range []string{"v9.9.9", "vague", ""} {
		if _, err := selectVersions(t.Context(), root, name); err == nil || !strings.Contains(err.Error(), "there is no version") {
			t.Errorf("%s: got %v", name, err)
		}
	}
	for name, want := range map[string]string{"v1.2.3": "# Released", "main": "# Changed"} {
		files, err := filesOf(t.Context(), root, name)
		if err != nil {
			t.Fatal(err)
		}
		if text, err := fs.ReadFile(files, "README.md"); err != nil || string(text) != want {
			t.Errorf("%s: got %q, %v", name, text, err)
		}
	}
}

func TestWriteVersions(t *testing.T) {
	tests := map[string]struct {
		folders []string
		order   string
		start   string
	}{
		"only the work tree":     {[]string{"main", "images"}, `"main"`, "main/index.html"},
		"releases":               {[]string{"v0.9.0", "main", "v0.10.0"}, `"main" "v0.10.0" "v0.9.0"`, "v0.10.0/index.html"},
		"a release candidate":    {[]string{"v0.9.0", "v0.10.0-rc.1"}, `"v0.10.0-rc.1" "v0.9.0"`, "v0.9.0/index.html"},
		"a release after its rc": {[]string{"v1.0.0-rc.1", "v1.0.0"}, `"v1.0.0" "v1.0.0-rc.1"`, "v1.0.0/index.html"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			out := t.TempDir()
			for _, folder := range test.folders {
				if err := write(out, folder+"/index.html", "x"); err != nil {
					t.Fatal(err)
				}
			}
			if err := writeVersions(out); err != nil {
				t.Fatal(err)
			}
			script, err := os.ReadFile(filepath.Join(out, "versions.js"))
			if err != nil {
				t.Fatal(err)
			}
			var want strings.Builder
			for i, one := range strings.Fields(test.order) {
				want.WriteString(map[bool]string{true: ","}[i > 0] + `{"name":` + one + `,"pages":["index.html"]}`)
			}
			if string(script) != "window.siteVersions = ["+want.String()+"];\n" {
				t.Errorf("got %s", script)
			}
			if start, err := os.ReadFile(filepath.Join(out, "index.html")); err != nil || !strings.Contains(string(start), "url="+test.start) {
				t.Errorf("got %s, %v", start, err)
			}
		})
	}
}

func TestDiagramName(t *testing.T) {
	if diagramName("a\n") != diagramName("a") || diagramName("a") == diagramName("b") {
		t.Error("the name must depend on the source")
	}
}
