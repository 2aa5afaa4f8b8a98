package process

import (
	"bytes"
	"slices"
	"strings"
	"sync"
)

const (
	tailLines = 64
	lineBytes = 1024
)

// stderrTail reads stderr to its end and keeps the last lines.
type stderrTail struct {
	source *output
	onLine func(string)
	ended  chan struct{}
	half   []byte

	mu   sync.Mutex
	tail []string
}

func newStderrTail(source *output, onLine func(string)) *stderrTail {
	t := &stderrTail{source: source, onLine: onLine, ended: make(chan struct{})}
	go t.run()
	return t
}

func (t *stderrTail) lines() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.tail)
}

func (t *stderrTail) run() {
	defer close(t.ended)
	defer t.source.file.Close()
	buffer := make([]byte, 32<<10)
	for {
		n, err := t.source.Read(buffer)
		t.feed(buffer[:n])
		if err != nil {
			break
		}
	}
	if len(t.half) > 0 {
		t.add()
	}
}

func (t *stderrTail) feed(data []byte) {
	for {
		part, rest, found := bytes.Cut(data, []byte("\n"))
		t.half = append(t.half, part[:min(len(part), lineBytes-len(t.half))]...)
		if !found {
			return
		}
		t.add()
		data = rest
	}
}

// add ends the line so far.
func (t *stderrTail) add() {
	line := strings.ToValidUTF8(strings.TrimSuffix(string(t.half), "\r"), "\uFFFD")
	t.half = t.half[:0]
	t.mu.Lock()
	if len(t.tail) == tailLines {
		t.tail = slices.Delete(t.tail, 0, 1)
	}
	t.tail = append(t.tail, line)
	t.mu.Unlock()
	if t.onLine != nil {
		t.onLine(line)
	}
}
