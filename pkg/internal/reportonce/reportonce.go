// Package reportonce keeps a log from repeating the same problem. A Set remembers for
// good what was reported; Topics remember what was reported last about each topic, until
// its problem is over.
package reportonce

import "sync"

// Topics holds the last report of each topic. The zero value is ready to use. It is not
// safe for concurrent use.
type Topics struct{ last map[string]string }

// Changed reports whether the text differs from the last one of the topic, and remembers
// it.
func (t *Topics) Changed(topic, text string) bool {
	if last, known := t.last[topic]; known && last == text {
		return false
	}
	if t.last == nil {
		t.last = map[string]string{}
	}
	t.last[topic] = text
	return true
}

// Clear forgets the topic: its problem is over, and the next one is new.
func (t *Topics) Clear(topic string) { delete(t.last, topic) }

// SharedTopics are Topics for concurrent use.
type SharedTopics struct {
	mu     sync.Mutex
	topics Topics
}

// Changed is Changed of Topics.
func (t *SharedTopics) Changed(topic, text string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.topics.Changed(topic, text)
}

// Clear is Clear of Topics.
func (t *SharedTopics) Clear(topic string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.topics.Clear(topic)
}
