package process

import (
	"os"
	"sync"
)

// input writes lines to stdin on a goroutine of its own, so that a full pipe delays no caller: the worker may wait for
// its output to be read before it reads more.
type input struct {
	file  *os.File
	wake  chan struct{}
	ended chan struct{}

	mu      sync.Mutex
	waiting [][]byte
	closed  bool
}

func newInput(file *os.File) *input {
	in := &input{file: file, wake: make(chan struct{}, 1), ended: make(chan struct{})}
	go in.run()
	return in
}

func (in *input) write(line []byte) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if !in.closed {
		in.waiting = append(in.waiting, line)
		in.notify()
	}
}

// close closes the pipe once all earlier lines are written.
func (in *input) close() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.closed = true
	in.notify()
}

// abandon closes the pipe at once, because the process has ended, and waits for the end of the goroutine.
func (in *input) abandon() {
	in.file.Close() // ends a write that waits
	in.close()
	<-in.ended
}

func (in *input) notify() {
	select {
	case in.wake <- struct{}{}:
	default:
	}
}

func (in *input) run() {
	defer close(in.ended)
	defer in.file.Close()
	for range in.wake {
		for {
			lines, closed := in.take()
			if len(lines) == 0 {
				if closed {
					return
				}
				break
			}
			for _, line := range lines {
				if _, err := in.file.Write(line); err != nil {
					in.close() // the process no longer reads; its exit explains why
					return
				}
			}
		}
	}
}

func (in *input) take() (lines [][]byte, closed bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	lines, in.waiting = in.waiting, nil
	return lines, in.closed
}
