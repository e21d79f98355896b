package admission

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/webhook/servers"
	"github.com/kopf-go/kopf/test/operators"
	"github.com/kopf-go/kopf/test/testenv"
)

// converted is a custom resource of one test with three versions. An object has a name, a number, and notes: v1alpha1 has
// the name and the number in one text, v1beta1 in two fields, and only v1 has the notes.
type converted struct {
	*gomega.WithT
	t                *testing.T
	namespace, group string
	admin            client.Client
}

// conversionRotation is how often the certificate of a converting operator is replaced. Each time, the API server reads all
// objects of the resource again, and converts those that are stored in former versions, one after another. It answers 429
// until then, and clients try again.
const conversionRotation = 20 * time.Second

var convertedVersions = []string{"v1alpha1", "v1beta1", "v1"}

func newConverted(t *testing.T) *converted {
	t.Helper()
	c := &converted{WithT: gomega.NewWithT(t), t: t, namespace: cluster.Namespace(t)}
	c.group = c.namespace + ".example.com"
	known := runtime.NewScheme()
	c.Expect(apiextensionsv1.AddToScheme(known)).To(gomega.Succeed())
	var err error
	c.admin, err = client.New(cluster.Config(), client.Options{Scheme: known})
	c.Expect(err).NotTo(gomega.HaveOccurred())
	return c
}

// install creates the definition.
func (c *converted) install() {
	c.t.Helper()
	c.Expect(c.admin.Create(c.t.Context(), testenv.Definition(c.group, "sites", "Site", convertedVersions...))).To(gomega.Succeed())
}

func (c *converted) definition() *apiextensionsv1.CustomResourceDefinition {
	c.t.Helper()
	found := &apiextensionsv1.CustomResourceDefinition{}
	c.Expect(c.admin.Get(c.t.Context(), client.ObjectKey{Name: "sites." + c.group}, found)).To(gomega.Succeed())
	return found
}

// change changes the definition.
func (c *converted) change(change func(*apiextensionsv1.CustomResourceDefinition)) {
	c.t.Helper()
	c.Expect(retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		found := c.definition()
		change(found)
		return c.admin.Update(c.t.Context(), found)
	})).To(gomega.Succeed())
}

func (c *converted) strategy() string { return string(c.definition().Spec.Conversion.Strategy) }

// registry declares the conversions between neighbors.
func (c *converted) registry() *kopf.Registry {
	r := kopf.NewRegistry()
	sites := kopf.Resource(c.group, "sites")
	r.OnConvert(sites, "v1alpha1", "v1beta1", func(_ context.Context, c *kopf.Conversion) error {
		spec := c.Object().Object["spec"].(map[string]any)
		name, number, found := strings.Cut(fmt.Sprint(spec["code"]), ":")
		parsed, err := strconv.ParseInt(number, 10, 64)
		if !found || err != nil {
			return fmt.Errorf("spec.code is %v, and not NAME:NUMBER", spec["code"])
		}
		delete(spec, "code")
		spec["name"], spec["number"] = name, parsed
		return nil
	})
	r.OnConvert(sites, "v1beta1", "v1alpha1", func(_ context.Context, c *kopf.Conversion) error {
		spec := c.Object().Object["spec"].(map[string]any)
		spec["code"] = fmt.Sprintf("%v:%v", spec["name"], spec["number"])
		delete(spec, "name")
		delete(spec, "number")
		return nil
	})
	r.OnConvert(sites, "v1beta1", "v1", func(_ context.Context, c *kopf.Conversion) error {
		annotations := c.Object().GetAnnotations()
		if notes, found := annotations["notes"]; found {
			c.Object().Object["spec"].(map[string]any)["notes"] = notes
			delete(annotations, "notes")
			c.Object().SetAnnotations(annotations)
		}
		return nil
	})
	r.OnConvert(sites, "v1", "v1beta1", func(_ context.Context, c *kopf.Conversion) error {
		spec := c.Object().Object["spec"].(map[string]any)
		if notes, found := spec["notes"].(string); found {
			delete(spec, "notes")
			return unstructured.SetNestedField(c.Object().Object, notes, "metadata", "annotations", "notes")
		}
		return nil
	})
	return r
}

// start starts an operator that converts the objects, and waits until the API server lets it.
func (c *converted) start(r *kopf.Registry, adjust ...func(*kopf.Options)) *operators.Operator {
	c.t.Helper()
	server := servers.Server{Port: testenv.FreePort(c.t), Rotation: conversionRotation}
	all := append([]func(*kopf.Options){func(o *kopf.Options) {
		o.Settings.Scope.Namespaces = []string{c.namespace}
		o.Settings.Admission.Server, o.Settings.Admission.Managed = server, c.namespace+".kopf.dev"
	}}, adjust...)
	return operators.Start(c.t, cluster.Config(), c.namespace, r, all...)
}

// awaitConversion waits until the API server uses the conversion.
func (c *converted) awaitConversion() {
	c.t.Helper()
	probe := c.object("v1alpha1", "probe", "a", 1, "")
	c.Eventually(func() error { // until the definition is served
		return client.IgnoreAlreadyExists(cluster.Client().Create(c.t.Context(), probe.DeepCopy()))
	}).Should(gomega.Succeed())
	c.Eventually(func() (map[string]any, error) {
		read := c.object("v1", "probe", "", 0, "")
		err := cluster.Client().Get(c.t.Context(), client.ObjectKeyFromObject(read), read)
		spec, _ := read.Object["spec"].(map[string]any)
		return spec, err
	}).Should(gomega.Equal(map[string]any{"name": "a", "number": int64(1)}))
	c.Expect(cluster.Client().Delete(c.t.Context(), probe)).To(gomega.Succeed())
}

// object returns an object in a version.
func (c *converted) object(version, name, text string, number int64, notes string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{}}
	object.SetAPIVersion(c.group + "/" + version)
	object.SetKind("Site")
	object.SetNamespace(c.namespace)
	object.SetName(name)
	spec := map[string]any{"name": text, "number": number}
	if version == "v1alpha1" {
		spec = map[string]any{"code": fmt.Sprintf("%s:%d", text, number)}
	}
	switch {
	case notes == "":
	case version == "v1":
		spec["notes"] = notes
	default:
		object.SetAnnotations(map[string]string{"notes": notes})
	}
	object.Object["spec"] = spec
	return object
}

// content is what must stay the same.
func content(of *unstructured.Unstructured) string {
	annotations := maps.Clone(of.GetAnnotations())
	return fmt.Sprint(of.GetName(), of.Object["spec"], annotations)
}

// again repeats a request as long as the API server asks for that, as every client must.
func again(call func() error) error {
	began := time.Now()
	for {
		err := call()
		if !apierrors.IsTooManyRequests(err) || time.Since(began) > 4*testenv.Patience {
			return err
		}
	}
}

// list returns the contents of all objects in a version by their names.
func (c *converted) list(version string) map[string]string {
	c.t.Helper()
	all := &unstructured.UnstructuredList{}
	all.SetAPIVersion(c.group + "/" + version)
	all.SetKind("SiteList")
	c.Expect(again(func() error { return cluster.Client().List(c.t.Context(), all, client.InNamespace(c.namespace)) })).To(gomega.Succeed())
	found := map[string]string{}
	for i := range all.Items {
		found[all.Items[i].GetName()] = content(&all.Items[i])
	}
	return found
}

// inParallel calls a function for each of many numbers.
func inParallel(count int, call func(i int) error) error {
	var all sync.WaitGroup
	var mu sync.Mutex
	var problems []error
	next := make(chan int)
	for range 16 {
		all.Go(func() {
			for i := range next {
				if err := again(func() error { return call(i) }); err != nil {
					mu.Lock()
					problems = append(problems, err)
					mu.Unlock()
				}
			}
		})
	}
	for i := range count {
		next <- i
	}
	close(next)
	all.Wait()
	return errors.Join(problems...)
}

// A thousand objects are written in any version, read in all, changed, and migrated to another storage version, and the
// certificate is replaced in between. Nothing is lost, and no request fails.
func TestAThousandObjectsThroughAllVersions(t *testing.T) {
	t.Parallel()
	c := newConverted(t)
	c.install()
	c.start(c.registry())
	c.awaitConversion()
	const count = 1000
	bundles := map[string]bool{}
	see := func() { bundles[string(c.definition().Spec.Conversion.Webhook.ClientConfig.CABundle)] = true }
	see()

	wanted := map[string]map[string]string{}
	for _, version := range convertedVersions {
		wanted[version] = map[string]string{}
	}
	random := rand.New(rand.NewPCG(7, 7))
	type written struct {
		version, name, text, notes string
		number                     int64
	}
	var all []written
	for i := range count {
		one := written{convertedVersions[random.IntN(3)], fmt.Sprintf("site-%d", i), fmt.Sprintf("text%d", random.IntN(50)), "", int64(random.IntN(1000))}
		if random.IntN(2) == 0 {
			one.notes = fmt.Sprintf("note %d", random.IntN(1000))
		}
		all = append(all, one)
		for _, version := range convertedVersions {
			wanted[version][one.name] = content(c.object(version, one.name, one.text, one.number, one.notes))
		}
	}
	write := func(from, to int) {
		t.Helper()
		c.Expect(inParallel(to-from, func(i int) error {
			one := all[from+i]
			return cluster.Client().Create(t.Context(), c.object(one.version, one.name, one.text, one.number, one.notes))
		})).To(gomega.Succeed())
		see()
	}
	read := func() {
		t.Helper()
		for _, version := range convertedVersions {
			c.Expect(c.list(version)).To(gomega.Equal(wanted[version]), version)
		}
		see()
	}

	write(0, count/2)
	// New objects are stored in another version from now on.
	c.change(func(d *apiextensionsv1.CustomResourceDefinition) {
		for i := range d.Spec.Versions {
			d.Spec.Versions[i].Storage = d.Spec.Versions[i].Name == "v1"
		}
	})
	c.Eventually(func() []string { return c.definition().Status.StoredVersions }).Should(gomega.ConsistOf("v1alpha1", "v1"))
	write(count/2, count)
	read()

	// Each object is read in one version, changed in it, and read again in all others.
	c.Expect(inParallel(count, func(i int) error {
		one := &all[i]
		version := convertedVersions[i%3]
		patch := fmt.Appendf(nil, `{"spec":{"number":%d}}`, i)
		if version == "v1alpha1" {
			patch = fmt.Appendf(nil, `{"spec":{"code":"%s:%d"}}`, one.text, i)
		}
		one.number = int64(i)
		return cluster.Client().Patch(t.Context(), c.object(version, one.name, "", 0, ""), client.RawPatch(types.MergePatchType, patch))
	})).To(gomega.Succeed())
	for _, one := range all {
		for _, version := range convertedVersions {
			wanted[version][one.name] = content(c.object(version, one.name, one.text, one.number, one.notes))
		}
	}
	read()

	// The migration: all objects are rewritten, and then the old version is not stored anymore.
	c.Expect(inParallel(count, func(i int) error {
		object := c.object("v1", all[i].name, "", 0, "")
		if err := cluster.Client().Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
			return err
		}
		return cluster.Client().Update(t.Context(), object)
	})).To(gomega.Succeed())
	migrated := c.definition()
	before := migrated.DeepCopy()
	migrated.Status.StoredVersions = []string{"v1"}
	c.Expect(c.admin.Status().Patch(t.Context(), migrated, client.MergeFrom(before))).To(gomega.Succeed())
	read()
	for began := time.Now(); len(bundles) < 3; read() { // until the certificate was replaced twice
		c.Expect(time.Since(began)).To(gomega.BeNumerically("<", 4*testenv.Patience))
	}
	t.Logf("%d objects, %d certificates", count, len(bundles))
}

// A user sees which object cannot be converted, and why. The other objects of the list stay.
func TestFailedConversionNamesTheObject(t *testing.T) {
	t.Parallel()
	c := newConverted(t)
	c.install()
	c.start(c.registry())
	c.awaitConversion()
	bad := c.object("v1alpha1", "bad", "", 0, "")
	bad.Object["spec"] = map[string]any{"code": "none"}
	c.Expect(cluster.Client().Create(t.Context(), bad)).To(gomega.Succeed())
	c.Expect(cluster.Client().Create(t.Context(), c.object("v1alpha1", "good", "a", 1, ""))).To(gomega.Succeed())
	all := &unstructured.UnstructuredList{}
	all.SetAPIVersion(c.group + "/v1")
	all.SetKind("SiteList")
	c.Eventually(func() error { return cluster.Client().List(t.Context(), all, client.InNamespace(c.namespace)) }).Should(gomega.MatchError(gomega.SatisfyAll(
		gomega.ContainSubstring("objects of sites."+c.group+" cannot be converted to v1: "+c.namespace+"/bad (uid "),
		gomega.ContainSubstring("from v1alpha1 to v1beta1: spec.code is none, and not NAME:NUMBER"), gomega.Not(gomega.ContainSubstring("/good"))),
	))
	c.Expect(c.list("v1alpha1")).To(gomega.HaveLen(2))
	c.Expect(cluster.Client().Delete(t.Context(), bad)).To(gomega.Succeed(), "the bad object can be deleted in its version")
	c.Eventually(func() map[string]string { return c.list("v1") }).Should(gomega.HaveLen(1))
}

// A definition that is installed later is converted, too. What another client resets is restored at once, because the
// operator sees the definition. The conversion stays when the operator stops, and goes with the old versions.
func TestConversionFollowsItsDefinition(t *testing.T) {
	t.Parallel()
	c := newConverted(t)
	operator := c.start(c.registry(), func(o *kopf.Options) { o.Settings.Scope.Namespaces = nil })
	c.install()
	c.Eventually(c.strategy).Should(gomega.Equal("Webhook"))
	c.awaitConversion()
	c.change(func(d *apiextensionsv1.CustomResourceDefinition) {
		d.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.NoneConverter}
		d.Labels = map[string]string{"kept": "yes"}
	})
	c.Eventually(c.strategy).Should(gomega.Equal("Webhook"))
	c.Expect(c.definition().Labels).To(gomega.HaveKeyWithValue("kept", "yes"))

	operator.Stop()
	c.Expect(c.strategy()).To(gomega.Equal("Webhook"))
	err := cluster.Client().Create(t.Context(), c.object("v1", "late", "a", 1, ""))
	c.Expect(err).To(gomega.MatchError(gomega.ContainSubstring("conversion webhook")), "nothing is stored without the conversion")

	// The next one lists objects that it must convert itself, before it is ready.
	c.Expect(cluster.Client().Create(t.Context(), c.object("v1alpha1", "old", "a", 5, "note"))).To(gomega.Succeed())
	r := c.registry()
	seen := make(chan map[string]any, 10)
	r.OnCreate(kopf.Resource(c.group, "v1", "sites"), func(_ context.Context, c *kopf.Change) error {
		seen <- c.Spec().Map()
		return nil
	}, kopf.ID("see"))
	next := c.start(r)
	c.Eventually(seen).Should(gomega.Receive(gomega.Equal(map[string]any{"name": "a", "number": int64(5), "notes": "note"})))
	next.Stop()

	c.change(func(d *apiextensionsv1.CustomResourceDefinition) { d.Spec.Versions = d.Spec.Versions[:1] })
	again := c.start(c.registry())
	again.Stop()
	c.Expect(c.strategy()).To(gomega.Equal("None"))
}

// The webhook server of a manager converts, too. A kubebuilder project has its own way to write spec.conversion.
func TestTheServerOfAManagerConverts(t *testing.T) {
	t.Parallel()
	c := newConverted(t)
	c.install()
	o := start(t, c.registry())
	c.change(func(d *apiextensionsv1.CustomResourceDefinition) {
		d.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.WebhookConverter, Webhook: &apiextensionsv1.WebhookConversion{
			ClientConfig:             &apiextensionsv1.WebhookClientConfig{URL: new(o.url + "/convert/" + d.Name), CABundle: o.ca},
			ConversionReviewVersions: []string{"v1"},
		}}
	})
	c.awaitConversion()
}

// The conversion of a definition belongs to the holder of shard 0: when that ends, another replica takes it over, and handles
// the objects when it converts them.
func TestConversionsMoveWithShards(t *testing.T) {
	t.Parallel()
	c := newConverted(t)
	c.install()
	start := func(port int) *operators.Operator {
		r := c.registry()
		r.OnCreate(kopf.Resource(c.group, "v1", "sites"), func(_ context.Context, c *kopf.Change) error {
			name, _ := c.Spec().String("name")
			c.Patch().Set(name, "metadata", "labels", "name")
			return nil
		}, kopf.ID("label"))
		return c.start(r, func(o *kopf.Options) {
			o.Settings.Name, o.Settings.Replicas.Shards, o.Settings.Replicas.LeaseNamespace = c.namespace, 2, c.namespace
			o.Settings.Replicas.RetryPeriod = 200 * time.Millisecond
			o.Settings.Admission.Server = servers.Server{Port: port, Secret: c.namespace + "/webhooks"}
		})
	}
	ports := []int{testenv.FreePort(t), testenv.FreePort(t)}
	address := func() string { return *c.definition().Spec.Conversion.Webhook.ClientConfig.URL }
	first := start(ports[0])
	c.awaitConversion()
	start(ports[1])
	first.Stop()
	c.Eventually(address).Should(gomega.ContainSubstring(strconv.Itoa(ports[1])))
	for i := range 8 { // objects in both shards
		object := c.object("v1alpha1", fmt.Sprintf("site-%d", i), "text", int64(i), "")
		c.Eventually(func() error { return cluster.Client().Create(t.Context(), object.DeepCopy()) }).Should(gomega.Succeed())
		read := c.object("v1", object.GetName(), "", 0, "")
		c.Eventually(cluster.Current(read)).Should(testenv.HavePath("metadata.labels.name", "text"))
	}
}

// Conversions need a server, as admission handlers do.
func TestConversionsNeedAServer(t *testing.T) {
	t.Parallel()
	c := newConverted(t)
	_, err := kopf.NewOperator(kopf.Options{Registry: c.registry(), Config: cluster.Config()})
	c.Expect(err).To(gomega.MatchError(gomega.SatisfyAll(gomega.ContainSubstring("admission/conversion_test.go:"),
		gomega.ContainSubstring("there are conversions, but no server for the reviews of the API server"))))
}
