package recording

import "sync"

// queue runs functions one after the other, apart from whoever adds them. It has a goroutine only while
// there are some. The zero value is empty.
type queue struct {
	mu      sync.Mutex
	waiting []func()
	ended   chan struct{} // closed when the last function has ended; nil if none is left
}

// add adds a function.
func (q *queue) add(f func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting = append(q.waiting, f)
	if q.ended == nil {
		q.ended = make(chan struct{})
		go q.run()
	}
}

// run runs the functions. The code of users can end the goroutine; then another one goes on.
func (q *queue) run() {
	done := false
	defer func() {
		if !done {
			go q.run()
		}
	}()
	for f := q.next(); f != nil; f = q.next() {
		f()
	}
	done = true
}

// next returns the next function, or nil.
func (q *queue) next() func() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) == 0 {
		close(q.ended)
		q.waiting = nil
		q.ended = nil
		return nil
	}
	f := q.waiting[0]
	q.waiting = q.waiting[1:]
	return f
}

// emptied returns a channel that is closed when all functions have ended.
func (q *queue) emptied() <-chan struct{} {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.ended == nil {
		none := make(chan struct{})
		close(none)
		return none
	}
	return q.ended
}
