package main

import (
	"reflect"
	"strings"
	"testing"
	"testing/fstest"
)

// sources is a small repository.
var sources = fstest.MapFS{
	"README.md":          {Data: []byte("# Home\n\n[guides](docs/README.md)\n")},
	"docs/README.md":     {Data: []byte("# Guides\n\n## First\n\n| | |\n|---|---|\n| [A](a.md) | the first |\n| [Rules](../RULES.md) | of all |\n\n## Words\n\nNo [table](b.md).\n\n## Second\n\n| [B](b.md) | it |\n")},
	"docs/a.md":          {Data: []byte("# About `a`\n\n```\n[not](missing.md)\n```\n[there](../pkg/deep/format.md#one) [out](https://example.com/x.md)\n")},
	"docs/b.md":          {Data: []byte("# B\n")},
	"RULES.md":           {Data: []byte("# Rules\n")},
	"pkg/deep/format.md": {Data: []byte("# Format\n")},
	"pkg/other.md":       {Data: []byte("# Not linked\n")},
}

func TestCollect(t *testing.T) {
	pages, err := collect(sources)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, one := range pages {
		got = append(got, one.url()+" "+one.toRoot()+" "+one.title)
	}
	want := []string{"index.html  Home", "rules.html  Rules", "docs/index.html ../ Guides", "docs/a.html ../ About a", "docs/b.html ../ B", "pkg/deep/format.html ../../ Format"}
	for _, one := range want {
		if !strings.Contains(strings.Join(got, "\n"), one) {
			t.Errorf("%q is missing in %q", one, got)
		}
	}
	if len(got) != len(want) {
		t.Errorf("got %q", got)
	}
}

func TestCollectReportsMistakes(t *testing.T) {
	for want, text := range map[string]string{"missing.md": "# A\n[there](missing.md)\n", "no title": "text\n"} {
		files := fstest.MapFS{"README.md": {Data: []byte(text)}}
		if _, err := collect(files); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

func TestNavigation(t *testing.T) {
	pages, err := collect(sources)
	if err != nil {
		t.Fatal(err)
	}
	want := []group{
		{"First", []item{{"A", "docs/a.md"}, {"Rules", "RULES.md"}}},
		{"Second", []item{{"B", "docs/b.md"}}},
	}
	if got := navigation(pages); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v", got)
	}
}
