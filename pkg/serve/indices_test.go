package serve_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kopf-go/kopf/pkg/serve/protocol"
)

func newConfig(name, color string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Data: map[string]string{"color": color}}
}

// byColor answers the calls of an index of config maps by their colors.
func byColor(t *testing.T, c *protocol.Call) string {
	t.Helper()
	var config corev1.ConfigMap
	if err := json.Unmarshal(c.Object, &config); err != nil {
		t.Error(err)
	}
	switch color := config.Data["color"]; color {
	case "":
		return `{"index": []}`
	case "unchanged":
		return `{}`
	case "broken":
		return `{"error": {"message": "oops"}}`
	case "early":
		return `{"error": {"message": "too early", "delay": 60}}`
	case "twice":
		return `{"index": [{"key": {"a": 1, "b": 2}, "value": 1}, {"key": {"b": 2, "a": 1.0}, "value": 2}]}`
	case "changed":
		return `{"index": [], "patch": {"data": {"color": "red"}}}`
	default:
		return fmt.Sprintf(`{"index": [{"key": [%q, 1], "value": {"name": %q}}, {"key": null, "value": %q}]}`, color, config.Name, color)
	}
}

// contents returns the indices of a call as JSON.
func contents(t *testing.T, c *protocol.Call) string {
	t.Helper()
	data, err := json.Marshal(c.Indices)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// All objects are indexed before any other handler is called. Only the handlers that name an index get it.
func TestAnIndexIsFilledAndRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, oneWorker, `[
			{"index": "configmaps", "id": "colors", "labels": {"ignored": {"absent": true}}},
			{"timer": "kopfexamples", "id": "tick", "interval": 1, "indices": ["colors"]},
			{"event": "kopfexamples", "id": "seen"}
		]`, func(c *protocol.Call) string {
			if c.Kind == protocol.Index {
				return byColor(t, c)
			}
			return "{}"
		})
		expect := func(want string) {
			t.Helper()
			b.Advance(2 * time.Second)
			if got := contents(t, b.last("tick")); got != `{"colors":[`+want+`]}` {
				t.Errorf("got the index %s, want %s", got, want)
			}
		}
		red := newConfig("one", "red")
		b.Create(newExample(`{}`))
		expect("")
		b.Create(red)
		expect(`{"key":["red",1],"values":[{"name":"one"}]},{"key":null,"values":["red"]}`)
		for _, color := range []string{"unchanged", "broken", "twice", "changed"} {
			b.Patch(red, `{"data": {"color": "`+color+`"}}`)
			expect(`{"key":["red",1],"values":[{"name":"one"}]},{"key":null,"values":["red"]}`)
		}
		b.Patch(red, `{"data": {"color": ""}}`)
		expect("")
		b.Patch(red, `{"data": {"color": "blue"}}`)
		expect(`{"key":["blue",1],"values":[{"name":"one"}]},{"key":null,"values":["blue"]}`)
		b.Patch(red, `{"metadata": {"labels": {"ignored": "yes"}}}`)
		expect("")
		b.Patch(red, `{"metadata": {"labels": {"ignored": null}}}`)
		expect(`{"key":["blue",1],"values":[{"name":"one"}]},{"key":null,"values":["blue"]}`)
		b.Restart()
		expect(`{"key":["blue",1],"values":[{"name":"one"}]},{"key":null,"values":["blue"]}`)
		b.Delete(red)
		expect("")
		if !slices.Contains(b.gone, string(red.GetUID())) {
			t.Errorf("the worker hears of the end of %q, and not of %s", b.gone, red.GetUID())
		}

		call := b.last("colors")
		if call.Kind != protocol.Index || call.Name != "one" || call.Resource.Plural != "configmaps" || call.Retry != 0 {
			t.Errorf("got the call %+v", call)
		}
		if all := b.last("seen").Indices; all != nil {
			t.Errorf("a handler that names no index has got %v", all)
		}
	})
}

// An object with a temporary error is left out of the index, and is indexed again after the delay.
func TestATemporaryErrorLeavesAnObjectOutOfAnIndex(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, oneWorker, `[{"index": "configmaps", "id": "colors"}, {"timer": "kopfexamples", "id": "tick", "interval": 1, "indices": "colors"}]`,
			func(c *protocol.Call) string {
				switch {
				case c.Kind != protocol.Index:
					return "{}"
				case c.Retry > 0:
					return `{"index": [{"key": "late", "value": null}]}`
				default:
					return byColor(t, c)
				}
			})
		b.Create(newExample(`{}`))
		config := newConfig("one", "red")
		b.Create(config)
		b.Patch(config, `{"data": {"color": "early"}}`)
		b.Advance(30 * time.Second)
		if got := contents(t, b.last("tick")); got != `{"colors":[]}` {
			t.Errorf("got the index %s before the delay", got)
		}
		b.Advance(time.Minute)
		if got := contents(t, b.last("tick")); got != `{"colors":[{"key":"late","values":[null]}]}` {
			t.Errorf("got the index %s after the delay", got)
		}
	})
}

// Several handlers fill one index, and handlers of children are called when it changes.
func TestChildrenDependOnAnIndex(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, oneWorker+"settings: {name: test}\n", `[
			{"index": "configmaps", "id": "names", "function": "a"},
			{"index": "secrets", "id": "names", "function": "b"},
			{"ensure": "kopfexamples", "id": "children", "watchIndices": ["names"], "indices": ["names"]}
		]`, func(c *protocol.Call) string {
			if c.Kind == protocol.Index {
				return `{"index": [{"key": "all", "value": "` + c.Function + "/" + c.Name + `"}]}`
			}
			return `{"children": []}`
		})
		b.Create(newExample(`{}`))
		b.Advance(time.Minute)
		before := b.count("children")
		b.Create(newConfig("one", "red"))
		b.Create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "two"}})
		b.Advance(time.Minute)
		if b.count("children") == before {
			t.Error("the handler was not called for the changed index")
		}
		if got := contents(t, b.last("children")); !strings.Contains(got, `"a/one"`) || !strings.Contains(got, `"b/two"`) {
			t.Errorf("got the index %s", got)
		}
	})
}

// Handlers of the operator itself, and sub-handlers, get indices, too. What a sub-handler names is checked when it is declared.
func TestOtherHandlersReadIndices(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, oneWorker, `[
			{"index": "configmaps", "id": "names"},
			{"create": "kopfexamples", "id": "fn"},
			{"create": "kopfexamples", "id": "mistaken"},
			{"cleanup": true, "id": "end", "indices": ["names"]}
		]`, func(c *protocol.Call) string {
			switch {
			case c.Kind == protocol.Index:
				return `{"index": [{"key": "all", "value": "` + c.Name + `"}]}`
			case c.Handler == "fn":
				return `{"subhandlers": [{"id": "part", "indices": ["names"]}]}`
			case c.Handler == "mistaken":
				return `{"subhandlers": [{"id": "part", "indices": ["name"]}]}`
			default:
				return `{}`
			}
		})
		b.Create(newConfig("one", ""))
		b.Settle()
		b.Create(newExample(`{}`))
		b.Advance(time.Minute)
		const want = `{"names":[{"key":"all","values":["one"]}]}`
		if got := contents(t, b.last("fn/part")); got != want {
			t.Errorf("the sub-handler has got %s", got)
		}
		if b.count("mistaken") != 1 || b.count("mistaken/part") != 0 {
			t.Errorf("a handler with a mistake was called %d times, and its sub-handler %d times", b.count("mistaken"), b.count("mistaken/part"))
		}
		b.Stop()
		if got := contents(t, b.last("end")); got != want && got != `{"names":[]}` {
			t.Errorf("the cleanup handler has got %s", got)
		}
	})
}

// Handlers that take long do not keep an index from being filled, even if they use up the calls of the worker.
func TestAnIndexDoesNotWaitForOtherCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answer := "wait"
		b := newBench(t, "kopf: v1\nworkers: {w: {command: [w], calls: 1}}\n", `[
			{"index": "configmaps", "id": "colors"},
			{"create": "kopfexamples", "id": "long"},
			{"daemon": "kopfexamples", "id": "look", "indices": ["colors"]}
		]`, func(c *protocol.Call) string {
			if c.Kind == protocol.Index {
				return byColor(t, c)
			}
			return answer
		})
		b.Create(newExample(`{}`))
		b.Settle()
		b.Create(newConfig("one", "red"))
		b.Settle()
		if b.count("long") != 1 || b.count("colors") != 1 {
			t.Errorf("the handler was called %d times, and the index %d times", b.count("long"), b.count("colors"))
		}
		if got := contents(t, b.last("look")); got != `{"colors":[]}` {
			t.Errorf("the daemon has got the index %s", got)
		}
		answer = "{}" // after the call has taken too long
		b.Advance(10 * time.Minute)
	})
}
