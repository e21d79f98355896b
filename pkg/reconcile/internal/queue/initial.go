package queue

import (
	"time"

	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"github.com/kopf-go/kopf/pkg/model/object"
)

// Objects that were listed wait while there are others, which have just changed, but not for
// longer than initialWait: at every tick, some of them become as urgent as the others, at most maxListed of a resource. So a
// list of thousands of objects neither delays a change nor is delayed for ever.
const (
	initialWait = 55 * time.Second
	initialTick = 250 * time.Millisecond
)

// maxListed is how many of the listed objects of a resource are in the queue of controller-runtime. There, an object takes
// several times the memory that its key does.
const maxListed = 1000

// initial contains the objects that were listed and that no worker has taken yet.
type initial struct {
	lists map[string]*list // by resource; nil if there were none since the last tick
	// queued contains the objects of all lists that are in the queue of controller-runtime, or enter it when they are not
	// handled anymore, and are not urgent.
	queued map[object.Key]struct{}
	// most is the maximum number of objects since there were none.
	most int
}

// list contains the listed objects of a resource, in their order.
type list struct {
	since  time.Time
	keys   []object.Key // that are not in the queue of controller-runtime
	queued int          // how many are
}

// AddInitial adds objects that were listed, and are not known to have changed. It keeps the keys.
func (q *Queue) AddInitial(keys ...object.Key) {
	q.mu.Lock()
	ticks := q.initial.lists != nil
	q.initial.add(keys)
	starts := !ticks && q.initial.lists != nil
	q.mu.Unlock()
	q.refill()
	if starts {
		time.AfterFunc(initialTick, q.promoteSome)
	}
}

// refill adds listed objects to the queue of controller-runtime, as many as may be there.
func (q *Queue) refill() {
	if keys := q.nextListed(); len(keys) > 0 {
		priority := handler.LowPriority
		q.AddWithOpts(priorityqueue.AddOpts{Priority: &priority}, keys...)
	}
}

// nextListed returns the listed objects that enter the queue of controller-runtime now.
func (q *Queue) nextListed() (keys []object.Key) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, l := range q.initial.lists {
		for l.queued < maxListed && len(l.keys) > 0 {
			key := l.pop()
			keys = append(keys, key)
			if _, queued := q.initial.queued[key]; !queued {
				q.initial.queued[key] = struct{}{}
				l.queued++
			}
		}
	}
	return keys
}

// promoteSome makes the listed objects urgent whose turn it is.
func (q *Queue) promoteSome() {
	if q.ShuttingDown() {
		return
	}
	queued, busy := q.nextUrgent()
	q.join(queued...)
	q.AddWithOpts(priorityqueue.AddOpts{}, busy...)
	q.refill()
}

// nextUrgent removes the objects that become urgent now: those that wait in the queue of controller-runtime, and those that
// enter it when they are not handled anymore.
func (q *Queue) nextUrgent() (queued, busy []object.Key) {
	q.mu.Lock()
	defer q.mu.Unlock()
	const ticks = int(initialWait / initialTick)
	number := (q.initial.most + ticks - 1) / ticks
	for key := range q.initial.queued {
		if len(queued)+len(busy) == number {
			break
		}
		if q.busy[key] == nil {
			queued = append(queued, key)
		} else {
			busy = append(busy, key)
		}
		q.initial.remove(key)
	}
	if q.initial.number() == 0 {
		q.initial = initial{}
	} else {
		time.AfterFunc(initialTick, q.promoteSome)
	}
	return queued, busy
}

// number returns how many objects there are.
func (i *initial) number() int {
	number := len(i.queued)
	for _, l := range i.lists {
		number += len(l.keys)
	}
	return number
}

// add adds objects to the lists of their resources.
func (i *initial) add(keys []object.Key) {
	for len(keys) > 0 {
		resource := keys[0].Resource
		end := 1
		for end < len(keys) && keys[end].Resource == resource {
			end++
		}
		if l := i.list(resource); len(l.keys) == 0 {
			l.keys = keys[:end:end]
		} else {
			l.keys = append(l.keys, keys[:end]...)
		}
		keys = keys[end:]
	}
	i.most = max(i.most, i.number())
}

// list returns the list of a resource.
func (i *initial) list(resource string) *list {
	if i.lists == nil {
		i.lists = map[string]*list{}
		i.queued = map[object.Key]struct{}{}
	}
	if i.lists[resource] == nil {
		i.lists[resource] = &list{since: time.Now()}
	}
	return i.lists[resource]
}

// remove removes an object that has left the queue of controller-runtime, or is urgent there.
func (i *initial) remove(key object.Key) {
	if _, queued := i.queued[key]; !queued {
		return
	}
	delete(i.queued, key)
	l := i.lists[key.Resource]
	l.queued--
	if l.queued == 0 && len(l.keys) == 0 {
		delete(i.lists, key.Resource)
	}
}

// pop removes the first key.
func (l *list) pop() object.Key {
	key := l.keys[0]
	l.keys = l.keys[1:]
	return key
}
