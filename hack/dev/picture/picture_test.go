package picture

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
)

func TestSVG(t *testing.T) {
	got := SVG("a & b", "$ make run\n[dev] It < works.\n"+"[01-minimal] "+strings.Repeat("word ", 30)+"{\"a\": 1}\n")
	for _, want := range []string{"<title>a &amp; b</title>", `class="prompt">$ make run</text>`, `class="dev">[dev]</text>`, "It &lt; works.", `class="faint">{&#34;a&#34;: 1}</text>`} {
		if !strings.Contains(got, want) {
			t.Errorf("%s is missing in %s", want, got)
		}
	}
	decoder := xml.NewDecoder(strings.NewReader(got))
	for {
		if _, err := decoder.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

func TestWrap(t *testing.T) {
	line := strings.TrimSpace(strings.Repeat("eight888 ", 40))
	rows := wrap(line)
	var words []string
	for i, row := range rows {
		var text string
		for _, part := range row {
			text += part.text
		}
		if len(text) > columns || strings.HasPrefix(text, " ") != (i > 0) {
			t.Errorf("row %d is %q", i, text)
		}
		words = append(words, strings.Fields(text)...)
	}
	if len(rows) < 4 || strings.Join(words, " ") != line {
		t.Errorf("got %d rows: %q", len(rows), words)
	}
	for _, one := range []string{"", "short", strings.Repeat("x", 3*columns)} {
		var letters int
		for _, row := range wrap(one) {
			for _, part := range row {
				letters += len(strings.TrimSpace(part.text))
			}
		}
		if letters != len(one) {
			t.Errorf("%q has %d letters", one, letters)
		}
	}
}

func TestNormalize(t *testing.T) {
	output := "[dev] at https://127.0.0.1:42697/ in /tmp/home/x\n" +
		"[a] 2026-11-22T23:03:36.546Z\tINFO\tThe objects cannot be watched yet; this is retried.\n" +
		"[a] 2026-11-22T23:03:36.546Z\tINFO\tuid 0b4f7a51-3a39-4c69-9d0c-1f35b0a3a3c0\n" +
		"[dev] the end\n"
	want := "[dev] at https://127.0.0.1:40000/ in ~/x\n" +
		"[a] 2026-01-01T12:00:00.000Z\tINFO\tuid 00000000-0000-0000-0000-000000000000\n[dev] the end\n"
	if got := Normalize(output, map[string]string{"/tmp/home": "~"}); got != want {
		t.Errorf("got %q", got)
	}
}

func TestSameLines(t *testing.T) {
	if !SameLines("a\nb\n", "b\na\n") || SameLines("a\nb\n", "a\n") || SameLines("a\na\n", "a\nb\n") {
		t.Error("the lines must be the same, in any order")
	}
}
