package program

import (
	"runtime/debug"
	"testing"
)

func TestName(t *testing.T) {
	for called, want := range map[string]string{
		"manager": "manager", "/usr/bin/my-operator": "my-operator", "bin/operator.exe": "operator", "bin/\xff": "?",
	} {
		if got := nameOf(called); got != want {
			t.Errorf("%q is called %q, want %q", called, got, want)
		}
	}
	if got := Name(); got != "program.test" {
		t.Errorf("this program is called %q", got)
	}
}

func TestVersions(t *testing.T) {
	tests := map[string]struct {
		main debug.Module
		deps []*debug.Module
		want [2]string
	}{
		"another program":                 {debug.Module{Path: "example.com/a", Version: "v1"}, []*debug.Module{{Path: "b", Version: "v3"}, {Path: library, Version: "v2"}}, [2]string{"v1", "v2"}},
		"a program of this module":        {debug.Module{Path: library, Version: "v2"}, []*debug.Module{{Path: "b", Version: "v3"}}, [2]string{"v2", "v2"}},
		"a build without version control": {debug.Module{Path: library}, nil, [2]string{"", ""}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			program, ofLibrary := versionsIn(&debug.BuildInfo{Main: test.main, Deps: test.deps}, "")
			if got := [2]string{program, ofLibrary}; got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestProgramsOfAReleaseHaveItsVersion(t *testing.T) {
	for path, want := range map[string]string{library: "v3", "a": "v1"} {
		if of, _ := versionsIn(&debug.BuildInfo{Main: debug.Module{Path: path, Version: "v1"}}, "v3"); of != want {
			t.Errorf("%s: got %s, want %s", path, of, want)
		}
	}
}
