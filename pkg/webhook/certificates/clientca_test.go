package certificates

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/onsi/gomega"
)

func TestClientCAs(t *testing.T) {
	g, f := gomega.NewWithT(t), folder(t.TempDir())
	ca := f.fill(t)
	empty := t.TempDir()
	g.Expect(os.Symlink(empty, f.path("directory"))).To(gomega.Succeed())
	tests := map[string]struct {
		file, directory string
		data            []byte
		message         string
	}{
		"a file":             {file: f.path("ca.crt")},
		"a directory":        {directory: string(f)},
		"data":               {data: ca},
		"no such file":       {file: filepath.Join(empty, "a"), message: "no such file"},
		"no such directory":  {directory: filepath.Join(empty, "a"), message: "no such file"},
		"an empty directory": {directory: empty, message: "no certificate was found"},
		"invalid data":       {data: []byte("a"), message: "no certificate was found"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := gomega.NewWithT(t)
			pool, err := ClientCAs(test.file, test.directory, test.data)
			if test.message != "" {
				g.Expect(err).To(gomega.MatchError(gomega.ContainSubstring(test.message)))
				return
			}
			g.Expect(err).NotTo(gomega.HaveOccurred())
			g.Expect(pool).NotTo(gomega.BeNil())
		})
	}
	pool, err := ClientCAs("", "", nil)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(pool).To(gomega.BeNil(), "clients are not verified")
}
