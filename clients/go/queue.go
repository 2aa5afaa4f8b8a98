package lmwire

import "sync"

// A queue has the events of one request that wait to be read. Adding does not wait: one slow reader must not stop the
// others, and a full pipe would stop the worker.
type queue struct {
	limit int
	ready chan struct{} // has an item after each change

	mu     sync.Mutex
	events []any
	bytes  int
	end    error // set once, after the last event
	ended  bool
}

func newQueue(limit int) *queue {
	return &queue{limit: limit, ready: make(chan struct{}, 1)}
}

// add returns whether the event fits into the queue.
func (q *queue) add(event any, size int) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.bytes += size
	if q.bytes > q.limit {
		return false
	}
	q.events = append(q.events, event)
	q.notify()
	return true
}

// finish ends the queue. The error is nil after a `done`.
func (q *queue) finish(err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.ended {
		q.ended, q.end = true, err
		q.notify()
	}
}

func (q *queue) notify() {
	select {
	case q.ready <- struct{}{}:
	default:
	}
}

// take returns the events that wait, and whether they are the last, with the error that follows them.
func (q *queue) take() (events []any, ended bool, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	events, q.events, q.bytes = q.events, nil, 0
	return events, q.ended, q.end
}
