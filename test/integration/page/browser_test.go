package page

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/hack/envtest/assets"
	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/test/operators"
	"github.com/kopf-go/kopf/test/testenv"
)

// pictures is the environment variable with the folder for the pictures of the guide.
const pictures = "KOPF_PAGE_PICTURES"

// chromiums are the names under which a browser can be installed, as chromedp finds it.
var chromiums = []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "headless-shell", "headless_shell"}

// newGallery declares an operator of a shop, whose objects come to many states.
func newGallery() *kopf.Registry {
	registry := kopf.NewRegistry()
	registry.Conditions(examples)
	registry.Ensure(examples, func(_ context.Context, c *kopf.Change) ([]client.Object, error) {
		config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: c.Name() + "-items", Namespace: c.Namespace()}, Data: map[string]string{"items": "2"}}
		label := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: c.Name() + "-label", Namespace: c.Namespace()}, Data: map[string]string{"to": "the customer"}}
		return []client.Object{config, label}, nil
	}, kopf.ID("items"))
	registry.OnCreate(examples, func(_ context.Context, c *kopf.Change) error {
		switch c.Labels()["state"] {
		case "unpaid":
			return kopf.Temporary(errors.New("the bank does not answer"), 20*time.Minute)
		case "markup":
			return kopf.Temporary(errors.New("the bank answers <img src=x onerror=alert(1)>"), time.Hour)
		default:
			return nil
		}
	}, kopf.ID("charge"), kopf.Retries(5))
	registry.OnCreate(examples, func(_ context.Context, c *kopf.Change) error {
		if c.Labels()["state"] == "lost" {
			return kopf.Permanent(errors.New("the parcel is lost"))
		}
		return nil
	}, kopf.ID("ship"))
	registry.OnUpdate(examples, func(context.Context, *kopf.Change) error { return nil }, kopf.ID("notify"))
	registry.OnDelete(examples, func(context.Context, *kopf.Change) error { return nil }, kopf.ID("refund"))
	return registry
}

// TestTheBrowserShowsThePage looks at the page with headless Chromium. The browser needs a separate module, whose test
// this one calls. It also makes the pictures of the guide, if the variable names a folder.
func TestTheBrowserShowsThePage(t *testing.T) {
	if chromium() == "" {
		t.Log("NOT TESTED: there is no Chromium in the PATH, so the page is not opened")
		return
	}
	for _, name := range []string{"shop", "team-blue"} {
		if err := cluster.Client().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
			t.Fatal(err)
		}
	}
	registry := newGallery()
	s := open(t, registry, "", true)
	operators.Start(t, cluster.Config(), "", registry, func(o *kopf.Options) {
		o.Settings.Name = gallery
		o.Settings.Scope.Namespaces = []string{"shop", "team-blue"}
	})
	s.namespace = "team-blue"
	for i := range 12 {
		s.create(fmt.Sprintf("sample-%02d", i))
	}
	s.namespace = "shop"
	states := map[int]string{7: "markup", 17: "unpaid", 23: "lost"}
	for i := range 30 {
		obj := testenv.NewObject("KopfExample", "shop", fmt.Sprintf("order-%02d", i), map[string]any{"items": int64(2)})
		obj.SetLabels(map[string]string{"state": states[i]})
		s.Expect(cluster.Client().Create(t.Context(), obj)).To(gomega.Succeed())
	}
	s.Eventually(s.rows("namespace=shop&name=order-")).Should(gomega.SatisfyAll(
		gomega.ContainElements("order-23: failed", "order-07: waiting", "order-17: waiting"), gomega.HaveLen(30),
		gomega.Not(gomega.ContainElement(gomega.MatchRegexp(": (due|in progress)$")))))

	var arguments []string
	if folder := os.Getenv(pictures); folder != "" {
		arguments = append(arguments, "-screenshots="+folder)
	}
	look(t, s, "TestOperatorPage", arguments...)
}

// chromium returns the path of a browser, or an empty text if there is none.
func chromium() string {
	for _, name := range chromiums {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}

// look runs a test of the module with the browser on the page of a scene.
func look(t *testing.T, s *scene, test string, arguments ...string) {
	t.Helper()
	root, err := assets.Root()
	if err != nil {
		t.Fatal(err)
	}
	all := append([]string{"-C", filepath.Join(root, "test", "site", "browser"), "test", "-count=1", "-v", "-run=^" + test + "$", ".", "-args", "-page=" + s.letIn}, arguments...)
	out, err := exec.CommandContext(t.Context(), "go", all...).CombinedOutput()
	t.Logf("%s", strings.ReplaceAll(string(out), s.letIn, "PAGE"))
	if err != nil {
		t.Errorf("the page does not work in %s: %v", chromium(), err)
	}
}
