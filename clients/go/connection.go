package lmwire

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/lmwire/lmwire/clients/go/internal/process"
	"github.com/lmwire/lmwire/clients/go/internal/wire"
)

const (
	protocolVersion = 1
	lineInBytes     = 32 << 20 // a request's line, without its newline
	bannerBytes     = 64 << 10 // lines before the reply to hello that are not objects, newlines included
	exitTimeout     = 5 * time.Second
	quotedBytes     = 200
)

// A connection is the session with one worker: its process, and the requests in flight.
type connection struct {
	process *process.Process
	config  config
	done    chan struct{} // closed when the process has ended and all requests have failed

	mu      sync.Mutex
	lastID  uint64
	pending map[string]*pending
	reason  error // why this side ended the worker
	lost    error // set once the worker takes no more requests
	greeted bool
	banner  int
}

// A pending request has not got its terminal. Its id stays taken until then.
type pending struct {
	command string
	queue   *queue // nil: nobody reads its events
}

func connect(command []string, c config) (*connection, error) {
	started, err := process.Start(command, c.onStderr)
	if err != nil {
		return nil, err
	}
	conn := &connection{process: started, config: c, done: make(chan struct{}), pending: map[string]*pending{}}
	go conn.run()
	return conn, nil
}

// send writes a command, and returns its id. With a nil queue its events are dropped.
func (c *connection) send(command string, fields []byte, q *queue) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lost != nil {
		return "", c.lost
	}
	c.lastID++
	id := strconv.FormatUint(c.lastID, 10)
	line := commandLine(id, command, fields)
	if size := len(line) - len("\n"); size > lineInBytes {
		return "", tooLong(size)
	}
	c.pending[id] = &pending{command: command, queue: q}
	c.process.Write(line)
	return id, nil
}

// tooLong returns the error of a request whose line is longer than a worker takes. The worker's answer would be the same.
func tooLong(size int) error {
	message := fmt.Sprintf("the request's line has %d bytes, more than %d; name media by a path, or shorten the text", size, lineInBytes)
	return &RequestError{Message: message, Code: ErrLineTooLong}
}

// commandLine returns a line with the id first, so that a worker that cannot read the line still finds it.
func commandLine(id, command string, fields []byte) []byte {
	line := make([]byte, 0, len(fields)+len(command)+len(id)+20)
	line = append(line, `{"id":"`+id+`","cmd":"`+command+`"`...)
	if len(fields) > len("{}") {
		line = append(append(line, ','), fields[1:]...)
	} else {
		line = append(line, '}')
	}
	return append(line, '\n')
}

// cancel asks the worker to end a request.
func (c *connection) cancel(id string) {
	c.mu.Lock()
	_, inFlight := c.pending[id]
	c.mu.Unlock()
	if inFlight {
		_, _ = c.send("cancel", []byte(`{"target":"`+id+`"}`), nil) // fails if the worker is gone, and so is the request
	}
}

// abandon drops the further events of a request, and cancels it.
func (c *connection) abandon(id string) {
	c.mu.Lock()
	if request := c.pending[id]; request != nil {
		request.queue = nil
	}
	c.mu.Unlock()
	c.cancel(id)
}

// busy returns whether a request is in flight that the worker's engine serves.
func (c *connection) busy() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, request := range c.pending {
		switch request.command {
		case "hello", "cancel", "ping", "stats", "quit":
		default:
			return true
		}
	}
	return false
}

// run reads events until the worker has ended, and then fails the requests that are left.
func (c *connection) run() {
	if err := c.read(); err != nil {
		c.mu.Lock()
		if c.reason == nil {
			c.reason = err
		}
		c.mu.Unlock()
		c.process.Kill()
	}
	select {
	case <-c.process.Exited():
	case <-time.After(exitTimeout):
		c.process.Kill()
	}
	state := c.process.Wait()
	c.fail(func(reason error) error {
		return &LostError{Reason: reason, State: state, Stderr: c.process.StderrTail()}
	})
	close(c.done)
}

// fail ends all requests in flight, and those to come.
func (c *connection) fail(lost func(reason error) error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lost == nil {
		c.lost = lost(c.reason)
	}
	for _, request := range c.pending {
		if request.queue != nil {
			request.queue.finish(c.lost)
		}
	}
	clear(c.pending)
}

// read receives lines to the end of the output, or to a line that breaks the protocol.
func (c *connection) read() error {
	lines := wire.NewLines(c.process.Stdout())
	for {
		line, err := lines.Next()
		switch {
		case errors.Is(err, wire.ErrLineTooLong):
		case err != nil: // the end of the output
			return nil
		default:
			err = c.receive(line)
		}
		if err != nil {
			quoted := bytes.ToValidUTF8(line[:min(len(line), quotedBytes)], []byte("\uFFFD"))
			return &ProtocolError{Problem: err, Line: string(quoted)}
		}
	}
}

// receive takes one line. It returns an error if the line breaks the protocol.
func (c *connection) receive(line []byte) error {
	if token, ok := wire.ParsePlainToken(line); ok {
		c.deliver(string(token.ID), &Token{Token: token.Text, TokenIDs: token.TokenIDs, Channel: Content}, len(line))
		return nil
	}
	if len(bytes.Trim(line, " \t\r")) == 0 {
		return nil
	}
	object, err := wire.Parse(line)
	if err == nil {
		return c.receiveObject(object, len(line))
	}
	if c.banner += len(line) + 1; c.banner <= bannerBytes && !c.isGreeted() {
		return nil // of a login shell
	}
	return err
}

func (c *connection) isGreeted() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.greeted
}

func (c *connection) receiveObject(object map[string]any, size int) error {
	kind, _ := object["event"].(string)
	var envelope struct {
		ID string `json:"id"`
	}
	noID := wire.Bind(object, &envelope)
	switch kind {
	case "error":
		failure := &RequestError{}
		if err := wire.Bind(object, failure); err != nil {
			return err
		}
		if object["id"] == nil {
			c.config.logger.Warn("lmwire: an error without a request", "code", string(failure.Code), "error", failure.Message)
			return nil
		}
		if noID == nil {
			c.end(envelope.ID, nil, failure)
		}
		return noID
	case "done":
		if noID != nil {
			return noID
		}
		return c.receiveDone(envelope.ID, object)
	default:
		event := newEvent(kind)
		if event == nil {
			return nil // of a later version
		}
		err := noID
		if err == nil {
			err = bindEvent(object, event)
		}
		if err == nil {
			c.deliver(envelope.ID, event, size)
		} else if kind == "progress" {
			return nil
		}
		return err
	}
}

func (c *connection) receiveDone(id string, object map[string]any) error {
	c.mu.Lock()
	request := c.pending[id]
	c.mu.Unlock()
	if request == nil {
		return nil
	}
	done := newDone(request.command)
	if err := bindEvent(object, done); err != nil {
		return err
	}
	if hello, ok := done.(*Hello); ok {
		if hello.Protocol != protocolVersion {
			return &versionError{worker: hello.Worker, versions: []int64{hello.Protocol}}
		}
		c.mu.Lock()
		c.greeted = true
		c.mu.Unlock()
	}
	c.end(id, done, nil)
	return nil
}

// deliver adds an event to its request's queue.
func (c *connection) deliver(id string, event any, size int) {
	c.mu.Lock()
	request := c.pending[id]
	var q *queue
	if request != nil {
		q = request.queue
	}
	c.mu.Unlock()
	if q != nil && !q.add(event, size) {
		q.finish(ErrSlowConsumer)
		c.abandon(id)
	}
}

// end ends a request with its terminal.
func (c *connection) end(id string, done any, failure error) {
	c.mu.Lock()
	request := c.pending[id]
	delete(c.pending, id)
	c.mu.Unlock()
	if request == nil || request.queue == nil {
		return
	}
	if done != nil {
		request.queue.add(done, 0)
	}
	request.queue.finish(failure)
}

// close ends the worker by the steps of [H-7], and returns when it is gone. Another goroutine reads the pipes meanwhile.
func (c *connection) close(ctx context.Context, drain bool) {
	timeouts := c.config.shutdown
	// `quit`: all requests end with their terminals, and the worker exits with 0.
	if drain {
		_, _ = c.send("quit", []byte(`{"drain":true}`), nil)
		select {
		case <-c.done:
			return
		case <-ctx.Done():
		}
	}
	_, _ = c.send("quit", nil, nil)
	if c.isDone(timeouts.Quit) {
		return
	}
	// The end of stdin ends a worker that could not read the line, and a program in between, such as ssh.
	c.process.CloseStdin()
	if c.isDone(timeouts.EOF) {
		return
	}
	// SIGTERM: the worker cancels, writes the terminals and exits within 2 s, even while its engine hangs.
	c.process.Terminate()
	if !c.isDone(timeouts.Term) {
		c.kill()
	}
}

// abort fails all requests at once, then ends a worker that hangs. `quit` and the end of stdin would not help: both let
// the engine finish its step first.
func (c *connection) abort(reason error) {
	c.mu.Lock()
	c.reason = reason
	c.mu.Unlock()
	c.fail(func(error) error { return &LostError{Reason: reason, Stderr: c.process.StderrTail()} })
	c.process.Terminate()
	if !c.isDone(c.config.shutdown.Term) {
		c.kill()
	}
}

func (c *connection) kill() {
	c.process.Kill()
	c.isDone(killTimeout)
}

// isDone waits for the end of the worker, and returns whether it came in time.
func (c *connection) isDone(timeout time.Duration) bool {
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case <-c.done:
		return true
	case <-timer.C:
		return false
	}
}
