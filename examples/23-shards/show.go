package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	objects = 18
	label   = "kopf.dev/shown-shards"
)

// show starts three replicas and some objects, kills a replica, starts it again, and tells what moves where.
func show(ctx context.Context) (err error) {
	s, err := newStage()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.clear()) }()

	if err := s.perform(ctx); !errors.Is(err, context.Canceled) { // by Ctrl-C
		return err
	}
	return nil
}

// perform is the whole show, until the context is done.
func (s *stage) perform(ctx context.Context) error {
	fmt.Println("Three replicas of the operator start.")
	for number := 1; number <= 3; number++ {
		if err := s.start(fmt.Sprint("replica ", number)); err != nil {
			return err
		}
	}
	if err := s.create(ctx); err != nil {
		return err
	}
	fmt.Printf("%d objects are created.\n", objects)
	held, err := s.await(ctx)
	if err != nil {
		return err
	}
	by := map[string][]int{}
	for _, number := range slices.Sorted(maps.Keys(held)) {
		by[held[number]] = append(by[held[number]], number)
	}
	for _, name := range slices.Sorted(maps.Keys(by)) {
		fmt.Printf("  %s handles %s\n", name, join(by[name]))
	}

	const victim = "replica 2"
	killed := time.Now()
	s.kill(victim)
	fmt.Printf("%s is killed. Its leases expire in some seconds.\n", victim)
	if held, err = s.tellMoves(ctx, held, killed); err != nil {
		return err
	}

	started := time.Now()
	if err := s.start(victim); err != nil {
		return err
	}
	fmt.Printf("%s starts again.\n", victim)
	if _, err = s.tellMoves(ctx, held, started); err != nil {
		return err
	}
	fmt.Println("That is all. The replicas work until you stop them.")
	<-ctx.Done()
	return ctx.Err()
}

// stage has the replicas that are running, and the cluster with their objects.
type stage struct {
	client    client.Client
	namespace string
	replicas  map[string]*exec.Cmd
}

func newStage() (*stage, error) {
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(clientcmd.NewDefaultClientConfigLoadingRules(), nil)
	config, err := loader.ClientConfig()
	if err != nil {
		return nil, err
	}
	namespace, _, err := loader.Namespace()
	if err != nil {
		return nil, err
	}
	c, err := client.New(config, client.Options{})
	return &stage{client: c, namespace: namespace, replicas: map[string]*exec.Cmd{}}, err
}

// start starts a replica. It logs only errors.
func (s *stage) start(name string) error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	command := exec.Command(program, "--namespace", s.namespace, "--quiet") //nolint:gosec // this program
	command.Env = append(os.Environ(), "REPLICA="+name)
	command.Stderr = os.Stderr
	if err := command.Start(); err != nil {
		return err
	}
	s.replicas[name] = command
	return nil
}

// kill ends a replica as the system does when it is out of memory: its leases are not released.
func (s *stage) kill(name string) {
	killed := s.replicas[name]
	delete(s.replicas, name)
	_ = killed.Process.Kill()
	_ = killed.Wait() // the error says that it was killed
}

// create creates the objects, or uses those of an earlier run.
func (s *stage) create(ctx context.Context) error {
	for number := 1; number <= objects; number++ {
		object := newObject()
		object.SetNamespace(s.namespace)
		object.SetName(fmt.Sprint("shown-", number))
		object.SetLabels(map[string]string{label: strconv.Itoa(number)})
		if err := s.client.Create(ctx, object); err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	return nil
}

func newObject() *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetAPIVersion("kopf.dev/v1")
	object.SetKind("KopfExample")
	return object
}

// clear deletes the objects, and stops the replicas.
func (s *stage) clear() error {
	failures := []error{s.client.DeleteAllOf(context.Background(), newObject(), client.InNamespace(s.namespace), client.HasLabels{label})}
	for _, command := range s.replicas {
		failures = append(failures, command.Process.Signal(os.Interrupt))
	}
	for name, command := range s.replicas {
		if err := command.Wait(); err != nil {
			failures = append(failures, fmt.Errorf("%s: %w", name, err))
		}
	}
	return errors.Join(failures...)
}

// handled returns which replica handles each object, by the object's number.
func (s *stage) handled(ctx context.Context) (map[int]string, error) {
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion("kopf.dev/v1")
	list.SetKind("KopfExampleList")
	if err := s.client.List(ctx, list, client.InNamespace(s.namespace), client.HasLabels{label}); err != nil {
		return nil, err
	}
	held := map[int]string{}
	for _, object := range list.Items {
		number, err := strconv.Atoi(object.GetLabels()[label])
		if err != nil {
			return nil, err
		}
		held[number], _, _ = unstructured.NestedString(object.Object, "status", "serve", "by")
	}
	return held, nil
}

const (
	lookStep = 200 * time.Millisecond
	calmTime = 3 * time.Second // without moves
)

// await waits until each of the replicas handles objects, and nothing moves anymore.
func (s *stage) await(ctx context.Context) (held map[int]string, err error) {
	for calm := time.Duration(0); calm < calmTime; calm += lookStep {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(lookStep):
		}
		now, err := s.handled(ctx)
		if err != nil {
			return nil, err
		}
		if !maps.Equal(now, held) || !s.isHandledByAll(now) {
			calm = 0
		}
		held = now
	}
	return held, nil
}

// isHandledByAll reports whether the replicas that are running handle all objects, and each of them some.
func (s *stage) isHandledByAll(held map[int]string) bool {
	by := map[string]bool{}
	for _, name := range held {
		by[name] = true
		if s.replicas[name] == nil {
			return false
		}
	}
	return len(by) == len(s.replicas)
}

// tellMoves waits until nothing moves anymore, and tells what has moved.
func (s *stage) tellMoves(ctx context.Context, before map[int]string, since time.Time) (held map[int]string, err error) {
	held, err = s.await(ctx)
	if err != nil {
		return nil, err
	}
	took := (time.Since(since) - calmTime).Round(100 * time.Millisecond)
	fmt.Printf("After %s:\n", took)
	moves := map[string][]int{}
	var others []int
	for _, number := range slices.Sorted(maps.Keys(held)) {
		if was, by := before[number], held[number]; was != by {
			move := fmt.Sprintf("from %s to %s", was, by)
			moves[move] = append(moves[move], number)
		} else {
			others = append(others, number)
		}
	}
	for _, move := range slices.Sorted(maps.Keys(moves)) {
		fmt.Printf("  %s: %s\n", join(moves[move]), move)
	}
	fmt.Printf("  %s: no move\n", join(others))
	return held, nil
}

// join lists objects, such as "objects 1, 4, 7".
func join(numbers []int) string {
	texts := make([]string, 0, len(numbers))
	for _, number := range numbers {
		texts = append(texts, strconv.Itoa(number))
	}
	if len(texts) == 1 {
		return "object " + texts[0]
	}
	return "objects " + strings.Join(texts, ", ")
}
