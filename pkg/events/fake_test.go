package events_test

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/kopf-go/kopf/pkg/events"
)

var ref = corev1.ObjectReference{APIVersion: "kopf.dev/v1", Kind: "KopfExample", Name: "example", Namespace: "ns", UID: "uid-1"}

// server is a fake API server for events that fails on request.
type server struct {
	corev1client.EventInterface
	mu         sync.Mutex
	events     map[string]*corev1.Event
	fail       func(ctx context.Context) error
	loseAnswer bool // to the next creation
}

func newServer() *server { return &server{events: map[string]*corev1.Event{}} }

func (s *server) Events(string) corev1client.EventInterface { return s }

func (s *server) Create(ctx context.Context, event *corev1.Event, _ metav1.CreateOptions) (*corev1.Event, error) {
	if err := s.troubled(ctx); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if event.ResourceVersion != "" {
		return nil, errors.New("resourceVersion should not be set on objects to be created")
	}
	if _, exists := s.events[event.Name]; exists {
		return nil, apierrors.NewAlreadyExists(corev1.Resource("events"), event.Name)
	}
	saved := event.DeepCopy()
	saved.ResourceVersion = "1"
	s.events[event.Name] = saved
	if s.loseAnswer {
		s.loseAnswer = false
		return nil, errors.New("connection reset")
	}
	return saved.DeepCopy(), nil
}

func (s *server) Patch(ctx context.Context, name string, _ types.PatchType, data []byte, _ metav1.PatchOptions, _ ...string) (*corev1.Event, error) {
	if err := s.troubled(ctx); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	saved, exists := s.events[name]
	if !exists {
		return nil, apierrors.NewNotFound(corev1.Resource("events"), name)
	}
	if err := json.Unmarshal(data, saved); err != nil { // good enough for the flat fields of these patches
		return nil, err
	}
	return saved.DeepCopy(), nil
}

func (s *server) troubled(ctx context.Context) error {
	s.mu.Lock()
	fail := s.fail
	s.mu.Unlock()
	if fail == nil {
		return nil
	}
	return fail(ctx)
}

func (s *server) failWith(fail func(ctx context.Context) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail = fail
}

// all returns a copy of the events by their messages.
func (s *server) all() map[string]corev1.Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	byMessage := map[string]corev1.Event{}
	for _, event := range s.events {
		byMessage[event.Message] = *event
	}
	return byMessage
}

// bench is a running recorder in a bubble with virtual time.
type bench struct {
	*events.Recorder
	server *server
	stop   func()
	logs   func() []string
}

func inBubble(t *testing.T, options events.Options, test func(t *testing.T, b *bench)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := &bench{server: newServer()}
		options.Logger, b.logs = logs()
		b.Recorder = events.New(b.server, options)
		b.stop = start(t, b.Recorder)
		defer b.stop()
		test(t, b)
	})
}

// start runs the recorder. The result stops it and waits until it has stopped.
func start(t *testing.T, r *events.Recorder) func() {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := r.Start(ctx); err != nil {
			t.Error(err)
		}
	}()
	return func() {
		cancel()
		<-done
	}
}

func logs() (logr.Logger, func() []string) {
	var mu sync.Mutex
	var lines []string
	logger := funcr.New(func(_, line string) {
		mu.Lock()
		defer mu.Unlock()
		lines = append(lines, line)
	}, funcr.Options{})
	return logger, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return append([]string(nil), lines...)
	}
}
