package languages

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/kopftest"
)

// startPython starts an operator with handlers in Python, and creates its object. The settings are YAML.
func (b *bench) startPython(t testing.TB, namespace, settings, handlers string) *operator {
	t.Helper()
	return b.start(t, namespace, writePython(t, settings, handlers))
}

// writePython writes the files of an operator with handlers in Python to a folder, and returns that.
func writePython(t testing.TB, settings, handlers string) string {
	t.Helper()
	adapter, err := filepath.Abs(filepath.Join("python", "kopf.py"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write(t, dir, map[string]string{
		"obj.yaml":      object,
		"operator.yaml": fmt.Sprintf("kopf: v1\nsettings: %s\nworkers: {python: {command: [python3, %q, handlers.py], calls: 200}}\n", settings, adapter),
		"handlers.py":   handlers,
	})
	return dir
}

// noPython reports that nothing tests handlers in Python.
func noPython(t testing.TB) bool {
	_, err := exec.LookPath("python3")
	if err != nil {
		t.Log("NOT TESTED: there is no python3 in the PATH")
	}
	return err != nil
}

// number returns a number in the status of the object.
func (o *operator) number(path ...string) int64 {
	value, err := o.field(append([]string{"status"}, path...)...)()
	o.Expect(err).NotTo(gomega.HaveOccurred())
	number, _ := value.(int64)
	return number
}

// testRestartedWorker kills a worker whose startup handler has filled the memo of the operator.
func (b *bench) testRestartedWorker(t *testing.T) {
	if noPython(t) {
		return
	}
	o := b.startPython(t, "languages-restarted", "{}", `
import os

import kopf


@kopf.on.startup()
def begin(memo, retry, logger, **_):
    logger.info(f"The process {os.getpid()} begins.")
    if retry == 0:
        raise kopf.TemporaryError("The first attempt fails.", delay=0.1)
    memo.filled_by = os.getpid()


@kopf.on.create("kopfexamples", id="look")
@kopf.on.update("kopfexamples", id="look")
def look(memo, **_):
    return {"process": os.getpid(), "memo": memo.filled_by}
`)
	o.Eventually(func() int64 { return o.number("look", "process") }, patience).Should(gomega.BeNumerically(">", 0))
	first := o.number("look", "process")
	o.Expect(o.number("look", "memo")).To(gomega.Equal(first))

	o.Expect(syscall.Kill(int(first), syscall.SIGKILL)).To(gomega.Succeed())
	o.change(`{"spec": {"size": 2}}`)
	o.Eventually(func() int64 { return o.number("look", "process") }, patience).ShouldNot(gomega.Equal(first))
	second := o.number("look", "process")
	o.Expect(o.number("look", "memo")).To(gomega.Equal(second))
	for _, process := range []int64{first, second} {
		o.Expect(strings.Count(o.output(), fmt.Sprintf("The process %d begins.", process))).To(gomega.Equal(2), "two attempts in each process")
	}
	o.remove()
}

// testMemosOfDeletedObjects creates and deletes many objects without deletion handlers, and lets a handler count the memos.
func (b *bench) testMemosOfDeletedObjects(t *testing.T) {
	if noPython(t) {
		return
	}
	const objects = 1000
	o := b.startPython(t, "languages-memos", "{posting: {disabled: true}}", `
import kopf


@kopf.on.event("kopfexamples")
async def seen(memo, **_):
    memo.seen = True


@kopf.on.create("kopfexamples", id="count")
@kopf.on.update("kopfexamples", id="count")
async def count(memo, **_):
    return {"memos": len(kopf._memos)}
`)
	hurried := rest.CopyConfig(b.config)
	hurried.QPS = -1
	fast, err := client.New(hurried, client.Options{})
	o.Expect(err).NotTo(gomega.HaveOccurred())
	for i := range objects {
		created := kopftest.Object(object)
		created.SetName(fmt.Sprint("counted-", i))
		created.SetNamespace(o.name)
		o.Expect(fast.Create(t.Context(), created)).To(gomega.Succeed())
	}
	attempts := 0
	memos := func() int64 {
		attempts++
		o.change(fmt.Sprintf(`{"spec": {"size": %d}}`, attempts))
		return o.number("count", "memos")
	}
	o.Eventually(memos, 5*patience, time.Second).Should(gomega.BeNumerically(">=", objects))
	for i := range objects {
		deleted := kopftest.Object(object)
		deleted.SetName(fmt.Sprint("counted-", i))
		deleted.SetNamespace(o.name)
		o.Expect(fast.Delete(t.Context(), deleted)).To(gomega.Succeed())
	}
	o.Eventually(memos, 5*patience, time.Second).Should(gomega.BeEquivalentTo(2), "those of the operator and of the object")
}

// testFilters has filters that are functions.
func (b *bench) testFilters(t *testing.T) {
	if noPython(t) {
		return
	}
	o := b.startPython(t, "languages-filters", "{}", `
import kopf


@kopf.on.update("kopfexamples", id="grown", when=lambda spec, **_: spec.get("size", 0) > 1)
def grown(spec, **_):
    return {"size": spec["size"]}


@kopf.on.field("kopfexamples", id="even", field="spec.size", new=lambda value, **_: value and value % 2 == 0)
def even(new, **_):
    return {"size": new}


@kopf.on.update("kopfexamples", id="always")
def always(spec, **_):
    return {"size": spec["size"]}
`)
	for _, want := range []struct{ size, grown, even int64 }{{1, 0, 0}, {2, 2, 2}, {3, 3, 2}} {
		o.change(fmt.Sprintf(`{"spec": {"size": %d}}`, want.size))
		o.Eventually(func() int64 { return o.number("always", "size") }, patience).Should(gomega.Equal(want.size))
		o.Eventually(func() int64 { return o.number("grown", "size") }, patience).Should(gomega.Equal(want.grown))
		o.Eventually(func() int64 { return o.number("even/spec.size", "size") }, patience).Should(gomega.Equal(want.even))
	}
}

// testExecute waits for sub-handlers in the middle of a handler.
func (b *bench) testExecute(t *testing.T) {
	if noPython(t) {
		return
	}
	o := b.startPython(t, "languages-execute", "{}", `
import functools

import kopf


@kopf.on.create("kopfexamples", id="make")
async def make(logger, **_):
    logger.info("The handler begins.")
    await kopf.execute(fns={item: functools.partial(prepare, item=item) for item in ("a", "b")})
    logger.info("The handler continues.")
    return {"made": True}


def prepare(item, retry, **_):
    if item == "b" and retry < 2:
        raise kopf.TemporaryError("It is too early.", delay=0.1)
    return {"prepared": item}
`)
	o.Eventually(o.field("status", "make", "made"), patience).Should(gomega.Equal(true))
	for _, item := range []string{"a", "b"} {
		o.Expect(o.field("status", "make/"+item, "prepared")()).To(gomega.Equal(item))
	}
	o.Expect(strings.Count(o.output(), "The handler begins.")).To(gomega.Equal(3))
	o.Expect(strings.Count(o.output(), "The handler continues.")).To(gomega.Equal(1))
}

// testDaemons changes the object of a daemon, and lets it end late, by a cancellation.
func (b *bench) testDaemons(t *testing.T) {
	if noPython(t) {
		return
	}
	o := b.startPython(t, "languages-daemons", "{}", `
import time

import kopf


@kopf.daemon("kopfexamples", cancellation_timeout=5)
def follow(spec, labels, stopped, logger, patch, **_):
    while spec.get("size") != 2 or labels.get("size") != "two":
        stopped.wait(0.1)
    logger.info("The daemon has seen the change.")
    stopped.wait()
    while kopf.DaemonStoppingReason.DAEMON_CANCELLED not in stopped.reason:
        time.sleep(0.01)
    time.sleep(0.5)
    logger.info(f"The daemon ends late: {kopf.DaemonStoppingReason.RESOURCE_DELETED in stopped.reason}.")
`)
	o.change(`{"spec": {"size": 2}, "metadata": {"labels": {"size": "two"}}}`)
	o.says("The daemon has seen the change.")
	o.remove()
	o.says("/kopf-example-1] The daemon ends late: True.")
	o.Expect(o.output()).NotTo(gomega.Or(gomega.ContainSubstring("The worker has ended"), gomega.ContainSubstring("does not exist")))
}

// testIndices has indices of config maps, which a timer, a handler of changes, and a filter read.
func (b *bench) testIndices(t *testing.T) {
	if noPython(t) {
		return
	}
	o := b.startPython(t, "languages-indices", "{}", `
import kopf


@kopf.index("configmaps", labels={"color": kopf.PRESENT})
def by_color(namespace, name, labels, **_):
    return {(namespace, labels["color"]): name}


@kopf.index("configmaps", field="data.parts")
def parts(body, **_):
    return set(body["data"]["parts"].split())


@kopf.timer("kopfexamples", interval=0.1, id="look")
def look(by_color: kopf.Index[tuple[str, str], str], parts: kopf.Index, namespace, **_):
    red = by_color.get((namespace, "red"), [])
    all_parts = set()
    for some in parts.get(None, []):
        all_parts |= some
    return {"colors": len(by_color), "red": sorted(red), "parts": sorted(all_parts)}


@kopf.on.update("kopfexamples", id="colored", when=lambda by_color, **_: len(by_color) > 0)
async def colored(spec, by_color, **_):
    return {"size": spec["size"], "colors": sorted(color for _, color in by_color)}
`)
	create := func(name, color, parts string) *unstructured.Unstructured {
		config := kopftest.Object(`{apiVersion: v1, kind: ConfigMap, data: {parts: ` + parts + `}}`)
		config.SetName(name)
		config.SetNamespace(o.name)
		config.SetLabels(map[string]string{"color": color})
		o.Expect(b.client.Create(t.Context(), config)).To(gomega.Succeed())
		return config
	}
	looked := func(part string) func() (any, error) { return o.field("status", "look", part) }
	o.Eventually(looked("colors"), patience).Should(gomega.BeEquivalentTo(0))
	one := create("one", "red", "a b")
	create("two", "red", "b c")
	create("three", "blue", "d")
	o.Eventually(looked("red"), patience).Should(gomega.Equal([]any{"one", "two"}))
	o.Eventually(looked("parts"), patience).Should(gomega.Equal([]any{"a", "b", "c", "d"}))
	o.Expect(looked("colors")()).To(gomega.BeEquivalentTo(2))
	o.change(`{"spec": {"size": 2}}`)
	o.Eventually(o.field("status", "colored", "colors"), patience).Should(gomega.Equal([]any{"blue", "red"}))
	o.Expect(b.client.Delete(t.Context(), one)).To(gomega.Succeed())
	o.Eventually(looked("red"), patience).Should(gomega.Equal([]any{"two"}))
	o.remove()
}

// testFamily has functions that are the handlers of children, which only the file can declare.
func (b *bench) testFamily(t *testing.T) {
	if noPython(t) {
		return
	}
	folder := writePython(t, "{name: languages-family}", `
def web(name, spec, **_):
    return [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"size": str(spec.get("size", 0)), "color": "red"}}]


async def decide(drift, **_):
    return {"accept": [field["path"] for field in drift["fields"] if field["path"] == "data.color"]}


def count(children, patch, **_):
    patch.status["children"] = [child["data"] for child in children]
`)
	path := filepath.Join(folder, "operator.yaml")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	write(t, folder, map[string]string{"operator.yaml": string(text) + `
needs: [{resource: configmaps, verbs: [get, list, watch, create, patch, delete]}]
handlers:
- {ensure: kopfexamples, id: web, worker: python}
- {drift: kopfexamples, id: decide, ensuredBy: [web], worker: python}
- {child: kopfexamples, children: configmaps, id: counted, function: count, worker: python}
`})
	o := b.start(t, "languages-family", folder)
	o.change(`{"spec": {"size": 1}}`)
	child := kopftest.Object(`{apiVersion: v1, kind: ConfigMap}`)
	child.SetName(o.object.GetName())
	child.SetNamespace(o.name)
	counted := func(size, color string) {
		t.Helper()
		o.Eventually(o.field("status", "children"), patience).Should(gomega.Equal([]any{map[string]any{"size": size, "color": color}}))
	}
	counted("1", "red")
	o.Expect(b.client.Patch(t.Context(), child, client.RawPatch(types.MergePatchType, []byte(`{"data": {"color": "blue", "size": "9"}}`)))).To(gomega.Succeed())
	counted("1", "blue")
	o.change(`{"spec": {"size": 2}}`)
	counted("2", "blue")
	o.remove()
}

// testPlaces makes mistakes in handlers in Python. The messages of the operator name their lines.
func (b *bench) testPlaces(t *testing.T) {
	if noPython(t) {
		return
	}
	g := gomega.NewWithT(t)
	for handlers, want := range map[string]string{
		"import kopf\n\n@kopf.on.create('kex', retires=5)\ndef a(**_): ...\n":                                                 "handlers.py:3: the option retires is not supported: did you mean retries?",
		"import kopf\n\n\n@kopf.daemon('kex',\n    when=lambda **_: True)\ndef a(**_): ...\n":                                 "handlers.py:4: filters of daemons cannot be functions: test it in the daemon",
		"import kopf\n\n@kopf.on.create('kex', retries=0)\ndef a(**_): ...\n":                                                 "handlers.py:3: 0 is too small",
		"import kopf\n\n@kopf.on.create('kex', id='a b')\ndef a(**_): ...\n":                                                  "handlers.py:3: the create handler \"a b\": ",
		"import kopf\n\n@kopf.on.create('kex', id='a')\ndef a(**_): ...\n\n@kopf.on.update('kex', id='a')\ndef b(**_): ...\n": "handlers.py:6: the id \"a\" is taken by another handler at ",
		"import kopf\n\n@kopf.on.login()\ndef a(**_): ...\n\n@kopf.on.create('kex', retires=5)\ndef b(**_): ...\n\nkopf.run()\n": "handlers.py:3: kopf.on.login is not supported: kopf serve connects like kubectl; " +
			"handlers.py:6: the option retires is not supported: did you mean retries?; handlers.py:9: kopf.run is not supported: ",
		"import kopf\n\ndef a(:\n":        "handlers.py:3: SyntaxError: ",
		"import kopf\nimport none_such\n": "handlers.py:2: ModuleNotFoundError: ",
	} {
		dir := writePython(t, "{}", handlers)
		output, err := exec.Command(b.program, "serve", filepath.Join(dir, "operator.yaml"), "--kubeconfig", b.kubeconfig).CombinedOutput()
		g.Expect(err).To(gomega.HaveOccurred())
		g.Expect(string(output)).To(gomega.ContainSubstring(want), handlers)
	}

	// The cluster does not have the resource, which may be installed later.
	o := b.startPython(t, "languages-places", "{}", "import kopf\n\n@kopf.on.create('kopfexamplez')\ndef a(**_): ...\n")
	o.says("selects nothing in this cluster", "handlers.py:3")
}
