// Package program names the program of this process, and its versions.
package program

import (
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
)

// library is the path of the module of this package.
const library = "github.com/kopf-go/kopf"

// Name returns the name of the file of the program, as in the user agent of client-go.
func Name() string {
	if len(os.Args) == 0 {
		return ""
	}
	return nameOf(os.Args[0])
}

func nameOf(called string) string {
	return strings.ToValidUTF8(strings.TrimSuffix(filepath.Base(called), ".exe"), "?")
}

// release is the version of the programs of this module in a release. The linker sets it, because such a program has a
// version only if it is built from a tag, or from the module proxy.
var release string

// Versions returns the versions of the program and of this library. Both are empty if they are
// unknown.
func Versions() (program, ofLibrary string) {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "", ""
	}
	return versionsIn(info, release)
}

func versionsIn(info *debug.BuildInfo, release string) (program, ofLibrary string) {
	if info.Main.Path == library && release != "" {
		return release, release
	}
	for _, m := range append([]*debug.Module{&info.Main}, info.Deps...) {
		if m.Path == library {
			ofLibrary = m.Version
		}
	}
	return info.Main.Version, ofLibrary
}
