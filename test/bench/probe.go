package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
)

const (
	probeName  = "probe"
	probeLabel = "bench.kopf.dev/probe"
)

// probe measures how long the operator takes to handle a change of another resource.
type probe struct {
	maps    typedcorev1.ConfigMapInterface
	watch   watch.Interface
	changes int
}

func newProbe(ctx context.Context, clients kubernetes.Interface) (*probe, error) {
	p := &probe{maps: clients.CoreV1().ConfigMaps(namespace)}
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: probeName, Labels: map[string]string{probeLabel: "yes"}}}
	if _, err := p.maps.Create(ctx, object, metav1.CreateOptions{}); err != nil {
		return nil, err
	}
	err := p.open(ctx)
	return p, err
}

// open watches the object, from now on.
func (p *probe) open(ctx context.Context) (err error) {
	p.watch, err = p.maps.Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + probeName})
	return err
}

// change changes the object, and returns the time until the operator has recorded that.
func (p *probe) change(ctx context.Context) (time.Duration, error) {
	p.changes++
	text := fmt.Sprintf(`"tick":"%d"`, p.changes)
	began := time.Now()
	if _, err := p.maps.Patch(ctx, probeName, types.MergePatchType, fmt.Appendf(nil, `{"data":{%s}}`, text), metav1.PatchOptions{}); err != nil {
		return 0, err
	}
	for {
		select {
		case event, open := <-p.watch.ResultChan():
			object, ok := event.Object.(*corev1.ConfigMap)
			if !open || !ok {
				return 0, errors.New("the watch of the probe ended early")
			}
			if strings.Contains(object.Annotations[handledByUs], text) {
				return time.Since(began), nil
			}
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		}
	}
}

// changesBetween is the pause between two changes of the probe.
const changesBetween = 20 * time.Millisecond

// measure changes the object as long as the condition is true, but so often at least. It
// returns the latencies in order.
func (p *probe) measure(ctx context.Context, least int, condition func() (bool, error)) (Latency, error) {
	var times []time.Duration
	for {
		again, err := condition()
		if err != nil || !again && len(times) >= least {
			return latencyOf(times), err
		}
		took, err := p.change(ctx)
		if err != nil {
			return Latency{}, err
		}
		times = append(times, took)
		if err := pause(ctx, changesBetween); err != nil {
			return Latency{}, err
		}
	}
}

// Latency contains the times from a change until it is handled.
type Latency struct {
	Changes int           `json:"changes"`
	Median  time.Duration `json:"medianNanoseconds"`
	P99     time.Duration `json:"p99Nanoseconds"`
	Max     time.Duration `json:"maxNanoseconds"`
}

func latencyOf(times []time.Duration) Latency {
	slices.Sort(times)
	n := len(times)
	if n == 0 {
		return Latency{}
	}
	return Latency{n, times[n/2], times[n*99/100], times[n-1]}
}

func (l Latency) String() string {
	return fmt.Sprintf("p50 %s, p99 %s, max %s of %d", milli(l.Median), milli(l.P99), milli(l.Max), l.Changes)
}
