package configurations

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/kopf-go/kopf/pkg/settings"
)

func unmanaged(file string) Options {
	return OptionsFor(settings.Settings{Admission: settings.Admission{ManifestFile: file}}, "", types.NamespacedName{})
}

func TestManifestsAreWrittenToAFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, c, directory := gomega.NewWithT(t), newCluster(), t.TempDir()
		file := filepath.Join(directory, "admission.yaml")
		m := NewManager(c, unmanaged(file), c.logger())
		lead(t, m)
		m.SetHooks([]Hook{hook("a")})
		for _, address := range []string{"https://h/", "https://other/", "https://other/"} {
			g.Expect(m.Publish(t.Context(), at(address))).To(gomega.Succeed())
			text, err := os.ReadFile(file)
			g.Expect(err).NotTo(gomega.HaveOccurred())
			g.Expect(string(text)).To(gomega.ContainSubstring("url: " + address + "a\n"))
		}
		info, err := os.Stat(file)
		g.Expect(err).NotTo(gomega.HaveOccurred())
		g.Expect(info.Mode().Perm()).To(gomega.Equal(os.FileMode(0o644)))
		g.Expect(os.ReadDir(directory)).To(gomega.HaveLen(1), "no other file is left there")
		g.Expect(c.logged()).To(gomega.HaveLen(2))
		g.Expect(c.logged()).To(gomega.HaveEach(gomega.And(gomega.ContainSubstring(`"file"=`), gomega.ContainSubstring("certificate signed by unknown authority"))))
	})
}

// Two operators with names have two manifests, so that applying one does not replace the other.
func TestManifestsHaveTheNameOfTheOperator(t *testing.T) {
	for operator, want := range map[string][2]string{
		"":                   {"auto.kopf.dev", "a.auto.kopf.dev"},
		"web.example.com":    {"web.example.com", "a.web.example.com"},
		"web":                {"web", "a.web.kopf.dev"},
		"No Name of Objects": {"auto.kopf.dev", "a.auto.kopf.dev"},
	} {
		text, err := Manifest([]Hook{hook("a")}, nil, at("https://h/"), OptionsFor(settings.Settings{Name: operator}, "", types.NamespacedName{}))
		if err != nil {
			t.Fatal(err)
		}
		config := &admissionregistrationv1.ValidatingWebhookConfiguration{}
		document, _, _ := strings.Cut(string(text), "---\n")
		if err := yaml.Unmarshal([]byte(document), config); err != nil {
			t.Fatal(err)
		}
		if got := [2]string{config.Name, config.Webhooks[0].Name}; got != want {
			t.Errorf("the operator %q: got %q, want %q", operator, got, want)
		}
	}
	named := OptionsFor(settings.Settings{Name: "web.example.com", Admission: settings.Admission{Managed: "mine"}}, "", types.NamespacedName{})
	if text, err := Manifest([]Hook{hook("a")}, nil, at("https://h/"), named); err != nil || !strings.Contains(string(text), "\n  name: mine\n") {
		t.Errorf("got %s, %v", text, err)
	}
}

// A file that cannot be written delays nothing, and is tried again.
func TestUnwritableManifestFileIsRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, c, directory := gomega.NewWithT(t), newCluster(), filepath.Join(t.TempDir(), "later")
		m := NewManager(c, unmanaged(filepath.Join(directory, "admission.yaml")), c.logger())
		lead(t, m)
		m.SetHooks([]Hook{hook("a")})
		g.Expect(m.Publish(t.Context(), at("https://h/"))).To(gomega.Succeed())
		time.Sleep(time.Hour)
		g.Expect(c.countLogged("The manifest could not be written")).To(gomega.Equal(1))
		g.Expect(os.Mkdir(directory, 0o755)).To(gomega.Succeed())
		time.Sleep(checkInterval)
		synctest.Wait()
		g.Expect(os.ReadDir(directory)).To(gomega.HaveLen(1))
	})
}
