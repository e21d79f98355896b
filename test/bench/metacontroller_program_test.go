package main

import (
	"context"
	"flag"
	"net/http"
	"net/http/pprof"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kopf-go/kopf/internal/controlplane"
)

// profiledVariable is the environment variable that makes this binary a program that serves
// profiles, with 64 MB of Go objects, until it is interrupted. Its value is its exit status.
const profiledVariable = "KOPF_BENCH_PROFILED"

var held []byte

func serveProfiles(arguments []string) int {
	if os.Getenv(profiledVariable) == "fail" || os.Getenv("KUBECONFIG") != "/the/kubeconfig" {
		return 3
	}
	flags := flag.NewFlagSet("program", flag.ContinueOnError)
	address := flags.String("pprof-address", "", "")
	for _, name := range []string{"workers", "client-go-qps", "metrics-address", "health-probe-bind-address"} {
		flags.Float64(name, 0, "")
	}
	if err := flags.Parse(arguments); err != nil {
		return 4
	}
	held = make([]byte, 64<<20)
	for i := range held {
		held[i] = byte(i)
	}
	interrupted, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	server := &http.Server{Addr: *address, Handler: http.HandlerFunc(pprof.Index), ReadHeaderTimeout: time.Minute}
	go func() { _ = server.ListenAndServe() }()
	<-interrupted.Done()
	return int(held[0])
}

func TestAProgramIsMeasuredFromOutside(t *testing.T) {
	t.Setenv(profiledVariable, "yes")
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	p, err := startProgram(ctx, os.Args[0], "/the/kubeconfig", 7)
	if err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); ; { // until it serves
		if err = p.collect(); err == nil || time.Now().After(deadline) {
			break
		}
		if err := pause(ctx, 10*time.Millisecond); err != nil {
			t.Fatal(err)
		}
	}
	var before, after sample
	if err != nil || p.measure(&before) != nil || before.CPU <= 0 || before.Resident < 64<<20 || before.Heap < 64<<20 || before.Heap > 128<<20 {
		t.Fatalf("%v %+v", err, before)
	}
	path := filepath.Join(t.TempDir(), "x.cpu")
	if err := p.startProfile(path); err != nil {
		t.Error(err)
	}
	if err := p.endProfile(); err != nil {
		t.Error(err)
	}
	if profile, err := os.ReadFile(strings.TrimSuffix(path, "cpu") + "heap"); err != nil || len(profile) == 0 {
		t.Errorf("no profile: %v", err)
	}
	if err := p.measure(&after); err != nil || after.CPU <= before.CPU {
		t.Errorf("%v: the CPU time was %s and is %s", err, before.CPU, after.CPU)
	}
	stop()
	if err := p.wait(ctx); err != nil || p.command.ProcessState.ExitCode() != 0 {
		t.Errorf("%v, %s", err, p.command.ProcessState)
	}
	if err := p.measure(&after); err == nil {
		t.Error("a program that has exited was measured")
	}
}

func TestAProgramThatExitsIsReported(t *testing.T) {
	t.Setenv(profiledVariable, "fail")
	p, err := startProgram(t.Context(), os.Args[0], "/the/kubeconfig", 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.wait(t.Context()); err == nil || !strings.Contains(err.Error(), "exit status 3") {
		t.Errorf("got %v", err)
	}
	if _, err := startProgram(t.Context(), "/no/such/program", "", 1); err == nil {
		t.Error("no error")
	}
	if _, err := heapAlloc([]byte("no profile")); err == nil {
		t.Error("no error")
	}
}

func TestOwnProcessIsMeasuredByItsClock(t *testing.T) {
	var before, after sample
	own := &ownProcess{}
	if err := own.measure(&before); err != nil {
		t.Fatal(err)
	}
	for began := time.Now(); time.Since(began) < 20*time.Millisecond; {
		_ = name(1)
	}
	if err := own.measure(&after); err != nil || after.CPU <= before.CPU || after.Resident <= 0 || after.Heap <= 0 || after.Goroutines <= 0 {
		t.Errorf("%v %+v", err, after)
	}
}

// throughProxy returns a client of the control plane that connects to the proxy.
func throughProxy(t *testing.T, plane *controlplane.ControlPlane, counted *counter) kubernetes.Interface {
	t.Helper()
	config := plane.Config()
	config.Wrap(counted.wrap)
	proxy, err := newProxy(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(proxy.Close)
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := writeProxyConfig(path, proxy); err != nil {
		t.Fatal(err)
	}
	through, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		t.Fatal(err)
	}
	clients, err := kubernetes.NewForConfig(through)
	if err != nil {
		t.Fatal(err)
	}
	return clients
}

func TestTheProxyCountsRequestsByKind(t *testing.T) {
	m, plane := prepared(t)
	if err := m.load.create(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	var counted counter
	clients := throughProxy(t, plane, &counted)
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	watch, err := clients.CoreV1().ConfigMaps(namespace).Watch(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	api := clients.CoreV1().RESTClient()
	example := "/apis/kopf.dev/v1/namespaces/bench/kopfexamples/" + name(1)
	for _, request := range []*rest.Request{
		api.Patch(types.MergePatchType).AbsPath(example + "/status").Body([]byte(`{"status":{"revision":1}}`)),
		api.Patch(types.MergePatchType).AbsPath(example).Body([]byte(`{"spec":{"revision":2}}`)),
		api.Get().AbsPath(example), api.Get().AbsPath("/apis/kopf.dev/v1"), api.Get().AbsPath("/version"),
		api.Post().AbsPath("/api/v1/namespaces/bench/events").Body(&corev1.Event{
			ObjectMeta: metav1.ObjectMeta{Name: "one"}, InvolvedObject: corev1.ObjectReference{Namespace: namespace},
		}),
		api.Post().AbsPath("/api/v1/namespaces/bench/configmaps").Body(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "seen"}}),
	} {
		if err := request.Do(ctx).Error(); err != nil {
			t.Errorf("%s: %v", request.URL(), err)
		}
	}
	if event := <-watch.ResultChan(); event.Object == nil || event.Object.(*corev1.ConfigMap).Name != "seen" {
		t.Errorf("got %+v", event)
	}
	watch.Stop()
	want := requests{Writes: 2, Reads: 1, Children: 1, Events: 1, Watches: 1, Discovery: 1, Others: 1}
	if got := counted.snapshot(); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
