package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/storage"
	"github.com/kopf-go/kopf/test/testenv"
)

// arena is the cluster in which operators are swapped, and what they need to run.
type arena struct {
	dir        string
	cluster    *testenv.Cluster
	kubeconfig string // a file
	patience   time.Duration
}

func openArena(dir string, patience time.Duration) (*arena, error) {
	cluster, err := testenv.Open(testenv.Options{CRDs: []string{testenv.ExampleCRDs}})
	if err != nil {
		return nil, err
	}
	a := &arena{dir: dir, cluster: cluster, kubeconfig: filepath.Join(dir, "kubeconfig"), patience: patience}
	if err := os.WriteFile(a.kubeconfig, cluster.KubeConfig(), 0o600); err != nil {
		return nil, errors.Join(err, cluster.Close())
	}
	return a, nil
}

func (a *arena) close() error { return a.cluster.Close() }

// trial is one seed that is running.
type trial struct {
	*arena

	history   *history
	namespace string
	processes *processes
	logs      []string     // the files
	kopf      map[int]bool // the numbers of the processes of Kopf
	former    map[int]bool // and of those that know neither the order of handlers nor schedules
}

// newTrial makes a namespace, and starts the journal and the watch of a seed.
func (a *arena) newTrial(ctx context.Context, seed uint64) (r *trial, stop func() error, err error) {
	r = &trial{arena: a, history: newHistory(), kopf: map[int]bool{}, former: map[int]bool{}, namespace: fmt.Sprintf("seed-%d", seed)}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: r.namespace}}
	if err := a.cluster.Client().Create(ctx, namespace); err != nil {
		return nil, nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, nil, err
	}
	server := &http.Server{Handler: r.history, ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(listener) }()
	journal := "SWAP_JOURNAL=http://" + listener.Addr().String()
	if r.processes, err = newProcesses(r.namespace, journal, "KUBECONFIG="+a.kubeconfig); err != nil {
		return nil, nil, errors.Join(err, server.Close())
	}
	watching, err := r.watch(ctx)
	if err != nil {
		return nil, nil, errors.Join(err, server.Close(), r.processes.close())
	}
	return r, func() error {
		watching.Stop()
		return errors.Join(server.Close(), r.processes.close())
	}, nil
}

// watch adds all versions of all objects to the history.
func (r *trial) watch(ctx context.Context) (watch.Interface, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(newObject(r.namespace, "").GroupVersionKind())
	watching, err := r.cluster.Client().Watch(ctx, list, client.InNamespace(r.namespace))
	if err != nil {
		return nil, err
	}
	go func() {
		for e := range watching.ResultChan() {
			obj, ok := e.Object.(*unstructured.Unstructured)
			if !ok {
				r.history.note("", "The watch has failed: %v", e.Object)
				continue
			}
			v := newVersion(obj)
			v.gone = e.Type == watch.Deleted
			r.history.add(event{object: obj.GetName(), version: v})
		}
		r.history.note("", "The watch has ended.")
	}()
	return watching, nil
}

func newObject(namespace, name string) *unstructured.Unstructured {
	return testenv.NewObject("KopfExample", namespace, name, nil)
}

// act does what a user does.
func (r *trial) act(ctx context.Context, a action) error {
	r.history.note(a.object, "The user %s it: step %v", a.verb, a.spec["step"])
	text, err := json.Marshal(map[string]any{"spec": a.spec})
	if err != nil {
		return err
	}
	obj := newObject(r.namespace, a.object)
	switch a.verb {
	case create:
		content := map[string]any{}
		if err := json.Unmarshal(text, &content); err != nil {
			return err
		}
		obj.Object["spec"] = content["spec"]
		if a.missed > 0 {
			now := time.Now().UTC().Truncate(time.Minute)
			run := &storage.Record{Started: now.Add(-time.Duration(a.missed) * time.Minute), Stopped: now, Retries: 1, Success: true}
			if text, err = json.Marshal(run); err != nil {
				return err
			}
			obj.SetAnnotations(map[string]string{prefix + runName: string(text)})
		}
		return r.cluster.Client().Create(ctx, obj)
	case update:
		return r.cluster.Client().Patch(ctx, obj, client.RawPatch(types.MergePatchType, text))
	default:
		return r.cluster.Client().Delete(ctx, obj)
	}
}

// start starts the next process, and returns when it is ready.
func (r *trial) start(p party) (*process, error) {
	number := r.history.next("The operator starts: " + p.name)
	if p.isKopf {
		r.kopf[number] = true
	}
	if p.isFormer {
		r.former[number] = true
	}
	log := filepath.Join(r.dir, fmt.Sprintf("%s-%d.log", r.namespace, number))
	r.logs = append(r.logs, log)
	events, stop := r.history.follow()
	defer stop()
	started, err := r.processes.start(p, number, log)
	if err != nil {
		return nil, err
	}
	deadline := time.After(r.patience)
	for {
		select {
		case e := <-events:
			if e.call != nil && e.call.Phase == "ready" && e.call.Process == number {
				return started, nil
			}
		case err := <-started.done:
			return nil, fmt.Errorf("the operator %s has ended before it was ready: %w\n%s", p.name, err, tail(log))
		case <-deadline:
			started.kill()
			return nil, fmt.Errorf("the operator %s is not ready after %s\n%s", p.name, r.patience, tail(log))
		}
	}
}

// tail returns the last lines of a log.
func tail(file string) string {
	text, err := os.ReadFile(file)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(lines[max(0, len(lines)-20):], "\n")
}
