package configurations

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/internal/conversion"
)

// sites is a definition with the versions v1 and v2, of which v2 is stored.
func sites() *unstructured.Unstructured {
	d := NewDefinition("sites.example.com")
	d.Object["spec"] = map[string]any{
		"group": "example.com", "conversion": map[string]any{"strategy": "None"}, "versions": []any{
			map[string]any{"name": "v1", "served": true, "storage": false}, map[string]any{"name": "v2", "served": true, "storage": true},
		},
	}
	d.Object["status"] = map[string]any{"storedVersions": []any{"v1", "v2"}}
	return d
}

func sitesGraph() *conversion.Graph {
	return &conversion.Graph{Name: "sites.example.com", Group: "example.com", Kind: "Site"}
}

func (c *cluster) conversion(g gomega.Gomega) map[string]any {
	read := NewDefinition("sites.example.com")
	g.Expect(c.Get(context.Background(), client.ObjectKeyFromObject(read), read)).To(gomega.Succeed())
	found, _, _ := unstructured.NestedMap(read.Object, "spec", "conversion")
	return found
}

func TestConversionIsWrittenIfItDiffers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, c := gomega.NewWithT(t), newCluster(sites())
		m := NewManager(c, managed, c.logger())
		lead(t, m)
		m.SetHooks(nil, sitesGraph())
		g.Expect(m.Publish(t.Context(), at("https://h/base/"))).To(gomega.Succeed())
		want := map[string]any{"strategy": "Webhook", "webhook": map[string]any{
			"conversionReviewVersions": []any{"v1"}, "clientConfig": map[string]any{"url": "https://h/base/convert/sites.example.com", "caBundle": "Q0E="},
		}}
		g.Expect(c.conversion(g)).To(gomega.Equal(want))
		g.Expect(c.countLogged("The cluster lets the operator convert objects.")).To(gomega.Equal(1))
		g.Expect(c.countLogged("Some objects cannot be converted")).To(gomega.Equal(1), "nothing is declared for the versions")
		m.SetHooks(nil, sitesGraph())
		time.Sleep(24 * time.Hour)
		synctest.Wait()
		g.Expect(c.written()).To(gomega.Equal(1))
		service := admissionregistrationv1.WebhookClientConfig{Service: &admissionregistrationv1.ServiceReference{Namespace: "ns", Name: "s", Path: new("/base")}}
		g.Expect(m.Publish(t.Context(), service)).To(gomega.Succeed())
		g.Expect(c.conversion(g)).To(gomega.HaveKeyWithValue("webhook", gomega.HaveKeyWithValue("clientConfig", gomega.Equal(map[string]any{
			"service": map[string]any{"namespace": "ns", "name": "s", "port": int64(443), "path": "/base/convert/sites.example.com"},
		}))))
		time.Sleep(time.Hour)
		synctest.Wait()
		g.Expect(c.written()).To(gomega.Equal(2))
	})
}

func TestConversionOfADefinitionThatDoesNotExistYet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, c := gomega.NewWithT(t), newCluster()
		m := NewManager(c, managed, c.logger())
		lead(t, m)
		m.SetHooks(nil, sitesGraph())
		g.Expect(m.Publish(t.Context(), at("https://h/"))).To(gomega.Succeed())
		g.Expect(c.written()).To(gomega.BeZero())
		g.Expect(c.Create(t.Context(), sites())).To(gomega.Succeed())
		time.Sleep(checkInterval + time.Second)
		synctest.Wait()
		g.Expect(c.conversion(g)).To(gomega.HaveKeyWithValue("strategy", "Webhook"))
	})
}

// Two clients that disagree must not flood the API server.
func TestContentionForAConversionSlowsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, c := gomega.NewWithT(t), newCluster(sites())
		m := NewManager(c, managed, c.logger())
		lead(t, m)
		m.SetHooks(nil, sitesGraph())
		g.Expect(m.Publish(t.Context(), at("https://h/"))).To(gomega.Succeed())
		restored := 0
		for range 120 { // two hours
			time.Sleep(time.Minute)
			synctest.Wait()
			if c.conversion(g)["strategy"] == "Webhook" {
				restored++
				none := sites()
				g.Expect(c.Client.Patch(t.Context(), none, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"conversion":{"strategy":"None","webhook":null}}}`)))).To(gomega.Succeed())
			}
		}
		g.Expect(restored).To(gomega.And(gomega.BeNumerically(">", 10), gomega.BeNumerically("<", 20)))
		g.Expect(c.countLogged("Another client has changed spec.conversion of a definition.")).To(gomega.BeNumerically("<", 14))
	})
}

func TestCABundleThatCertManagerInjectsInADefinitionIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := sites()
		d.SetAnnotations(map[string]string{"cert-manager.io/inject-ca-from": "ns/name"})
		conversion := map[string]any{"strategy": "Webhook", "webhook": map[string]any{"clientConfig": map[string]any{"url": "https://old/", "caBundle": "aW5qZWN0ZWQ="}}}
		if err := unstructured.SetNestedMap(d.Object, conversion, "spec", "conversion"); err != nil {
			t.Fatal(err)
		}
		g, c := gomega.NewWithT(t), newCluster(d)
		m := NewManager(c, managed, c.logger())
		lead(t, m)
		m.SetHooks(nil, sitesGraph())
		for range 2 {
			g.Expect(m.Publish(t.Context(), at("https://h/"))).To(gomega.Succeed())
			g.Expect(c.conversion(g)).To(gomega.HaveKeyWithValue("webhook", gomega.HaveKeyWithValue("clientConfig", gomega.HaveKeyWithValue("caBundle", "aW5qZWN0ZWQ="))))
			g.Expect(c.written()).To(gomega.Equal(1))
		}
	})
}

// With the strategy None, the API server would cut objects of several versions without a word.
func TestCleanupLeavesTheConversionThatObjectsNeed(t *testing.T) {
	for name, test := range map[string]struct {
		change func(d *unstructured.Unstructured)
		want   string
	}{
		"two versions are served": {func(*unstructured.Unstructured) {}, "Webhook"},
		"objects can be stored in an old one": {func(d *unstructured.Unstructured) {
			d.Object["spec"].(map[string]any)["versions"].([]any)[0].(map[string]any)["served"] = false
		}, "Webhook"},
		"one version is left": {func(d *unstructured.Unstructured) {
			d.Object["spec"].(map[string]any)["versions"].([]any)[0].(map[string]any)["served"] = false
			d.Object["status"] = map[string]any{"storedVersions": []any{"v2"}}
		}, "None"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := sites()
				test.change(d)
				g, c := gomega.NewWithT(t), newCluster(d)
				m := NewManager(c, managed, c.logger())
				lead(t, m)
				m.SetHooks(nil, sitesGraph())
				g.Expect(m.Publish(t.Context(), at("https://h/"))).To(gomega.Succeed())
				g.Expect(m.Cleanup(t.Context())).To(gomega.Succeed())
				g.Expect(c.conversion(g)).To(gomega.HaveKeyWithValue("strategy", test.want))
				stays := 0
				if test.want == "Webhook" {
					stays = 1
				}
				g.Expect(c.countLogged("The conversion stays in the definition")).To(gomega.Equal(stays))
				g.Expect(c.countLogged("The conversion is removed from the definition")).To(gomega.Equal(1 - stays))
			})
		})
	}
}

// Others write to what the operator has just read. It reads it again then, also when it stops.
func TestWritesOfOthersInBetweenAreNoFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := sites()
		d.Object["spec"].(map[string]any)["versions"].([]any)[0].(map[string]any)["served"] = false
		d.Object["status"] = map[string]any{"storedVersions": []any{"v2"}}
		g, c := gomega.NewWithT(t), newCluster(d)
		m := NewManager(c, managed, c.logger())
		lead(t, m)
		m.SetHooks([]Hook{hook("a")}, sitesGraph())
		g.Expect(m.Publish(t.Context(), at("https://h/"))).To(gomega.Succeed())
		raced := map[string]int{}
		c.beforePatch = func(ctx context.Context, direct client.Client, o client.Object) {
			name := fmt.Sprintf("%T", o)
			if raced[name]++; raced[name]%2 == 0 {
				return
			}
			other := o.DeepCopyObject().(client.Object)
			g.Expect(direct.Get(ctx, client.ObjectKeyFromObject(o), other)).To(gomega.Succeed())
			other.SetLabels(map[string]string{"written": strconv.Itoa(raced[name])})
			g.Expect(direct.Update(ctx, other)).To(gomega.Succeed())
		}
		g.Expect(m.Publish(t.Context(), at("https://other/"))).To(gomega.Succeed())
		g.Expect(c.conversion(g)).To(gomega.HaveKeyWithValue("webhook", gomega.HaveKeyWithValue("clientConfig", gomega.HaveKeyWithValue("url", "https://other/convert/sites.example.com"))))
		g.Expect(m.Cleanup(t.Context())).To(gomega.Succeed())
		g.Expect(c.conversion(g)).To(gomega.HaveKeyWithValue("strategy", "None"))
		g.Expect(c.countLogged("modified")).To(gomega.BeZero())
		for name, count := range raced {
			g.Expect(count).To(gomega.Equal(4), name)
		}
		g.Expect(raced).To(gomega.HaveLen(2))
	})
}

// Another webhook may have taken the conversion over.
func TestConversionOfOthersIsNotRemoved(t *testing.T) {
	d := sites()
	conversion := map[string]any{"strategy": "Webhook", "webhook": map[string]any{"clientConfig": map[string]any{"url": "https://other/convert"}}}
	if err := unstructured.SetNestedMap(d.Object, conversion, "spec", "conversion"); err != nil {
		t.Fatal(err)
	}
	removable, reason, err := IsConversionRemovable(d)
	if removable || reason != "" || err != nil {
		t.Errorf("got %t, %s, %v", removable, reason, err)
	}
}

func TestManifestHasTheCommandsForDefinitions(t *testing.T) {
	text, err := Manifest(nil, []*conversion.Graph{sitesGraph()}, at("https://h/"), Options{})
	want := `# kubectl patch customresourcedefinition sites.example.com --type merge -p '{"spec":{"conversion":{"strategy":"Webhook","webhook":{"clientConfig":{"url":"https://h/convert/sites.example.com","caBundle":"Q0E="},"conversionReviewVersions":["v1"]}}}}'`
	if err != nil || !strings.Contains(string(text), want) {
		t.Errorf("got %s, %v", text, err)
	}
}

// A replica that does not write the conversions waits until another one has.
func TestReplicasAwaitTheConversionsOfAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, c := gomega.NewWithT(t), newCluster(sites())
		m, other := NewManager(c, managed, c.logger()), NewManager(c, managed, c.logger())
		began := time.Now()
		time.AfterFunc(10*time.Second, func() {
			lead(t, other)
			other.SetHooks(nil, sitesGraph())
			g.Expect(other.Publish(t.Context(), at("https://h/"))).To(gomega.Succeed())
		})
		before, ok := m.AwaitConverted(t.Context(), "sites.example.com")
		g.Expect(time.Since(began)).To(gomega.BeNumerically("~", 10*time.Second, conversionPolling))
		g.Expect([]bool{before, ok}).To(gomega.Equal([]bool{false, true}))
		before, ok = m.AwaitConverted(t.Context(), "sites.example.com")
		g.Expect([]bool{before, ok}).To(gomega.Equal([]bool{true, true}))
		before, ok = m.AwaitConverted(t.Context(), "others.example.com")
		g.Expect([]bool{before, ok}).To(gomega.Equal([]bool{true, true}), "it does not exist")

		g.Expect(c.Delete(t.Context(), sites())).To(gomega.Succeed())
		g.Expect(c.Create(t.Context(), sites())).To(gomega.Succeed())
		ended, end := context.WithCancel(t.Context())
		end()
		_, ok = NewManager(c, Options{}, c.logger()).AwaitConverted(ended, "sites.example.com")
		g.Expect(ok).To(gomega.BeFalse())
	})
}
