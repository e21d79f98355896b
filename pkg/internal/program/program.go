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

// Versions returns the versions of the program and of this library. Both are empty if they are
// unknown.
func Versions() (program, ofLibrary string) {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "", ""
	}
	return versionsIn(info)
}

func versionsIn(info *debug.BuildInfo) (program, ofLibrary string) {
	for _, m := range append([]*debug.Module{&info.Main}, info.Deps...) {
		if m.Path == library {
			ofLibrary = m.Version
		}
	}
	return info.Main.Version, ofLibrary
}
