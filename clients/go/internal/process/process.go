// Package process runs the worker's process: it has a group of its own, and its pipes are read until it is gone.
package process

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"
)

// A Process is a running worker, or a program that leads to one.
type Process struct {
	cmd    *exec.Cmd
	stdout *output
	stderr *stderrTail
	input  *input
	exited chan struct{}

	mu     sync.Mutex
	reaped bool // then its process group may belong to others
}

// Start runs a command. It calls onStderr, if that is not nil, with each line of stderr, on a goroutine of its own.
func Start(command []string, onStderr func(line string)) (*Process, error) {
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Env = environment(os.Environ())
	setGroup(cmd)
	ours, theirs, err := pipes()
	if err != nil {
		return nil, err
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = theirs[0], theirs[1], theirs[2]
	err = cmd.Start()
	closeAll(theirs)
	if err != nil {
		closeAll(ours)
		return nil, err
	}
	p := &Process{
		cmd:    cmd,
		input:  newInput(ours[0]),
		stdout: &output{file: ours[1]},
		stderr: newStderrTail(&output{file: ours[2]}, onStderr),
		exited: make(chan struct{}),
	}
	go p.reap()
	return p, nil
}

// pipes returns our ends of stdin, stdout and stderr, and the child's.
func pipes() (ours, theirs [3]*os.File, err error) {
	for i := range ours {
		read, write, err := os.Pipe()
		if err != nil {
			closeAll(ours)
			closeAll(theirs)
			return ours, theirs, err
		}
		if i == 0 {
			ours[i], theirs[i] = write, read
		} else {
			ours[i], theirs[i] = read, write
		}
	}
	return ours, theirs, nil
}

func closeAll(files [3]*os.File) {
	for _, file := range files {
		file.Close() // a nil file reports an error, which is of no use here
	}
}

// PID returns the id of the process.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Stdout returns the worker's output. It ends with the process, even if a grandchild holds the pipe open.
func (p *Process) Stdout() io.Reader { return p.stdout }

// Write sends a line to stdin without waiting. Lines that do not fit into the pipe follow later, while the process lives.
func (p *Process) Write(line []byte) { p.input.write(line) }

// CloseStdin closes stdin after all lines that were written before.
func (p *Process) CloseStdin() { p.input.close() }

// Terminate sends SIGTERM to the process group.
func (p *Process) Terminate() { p.signal(terminateGroup) }

// Kill sends SIGKILL to the process group.
func (p *Process) Kill() { p.signal(killGroup) }

func (p *Process) signal(send func(pid int)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.reaped {
		send(p.PID())
	}
}

// Exited returns a channel that is closed when the process has ended.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// StderrTail returns the last 64 lines of stderr, each cut to 1,024 bytes.
func (p *Process) StderrTail() []string { return p.stderr.lines() }

// Wait returns how the process ended, after all that it wrote to stderr was read and the pipes were closed. It is called
// after the last read of Stdout.
func (p *Process) Wait() *os.ProcessState {
	<-p.exited
	<-p.stderr.ended
	p.input.abandon()
	p.stdout.file.Close()
	return p.cmd.ProcessState
}

func (p *Process) reap() {
	_ = p.cmd.Wait() // ProcessState has the result
	p.mu.Lock()
	// The process's children must not outlive it. The group's id still belongs to them: the system assigns ids in turn,
	// and this one was free for only microseconds.
	killGroup(p.PID())
	p.reaped = true
	p.mu.Unlock()
	p.stdout.processEnded()
	p.stderr.source.processEnded()
	close(p.exited)
}

// output reads a pipe. After the end of the process it returns what the pipe holds, and does not wait for more.
type output struct {
	file     *os.File
	draining bool
	drained  int
}

const maxDrained = 1 << 20 // the largest capacity of a pipe

func (o *output) processEnded() {
	_ = o.file.SetReadDeadline(time.Unix(1, 0)) // wakes Read; fails only if the file is closed
}

func (o *output) Read(buffer []byte) (int, error) {
	if !o.draining {
		n, err := o.file.Read(buffer)
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			return n, err
		}
		o.draining = true
		if err := o.file.SetReadDeadline(time.Time{}); err != nil {
			return 0, err
		}
	}
	if o.drained >= maxDrained { // a grandchild writes without end
		return 0, io.EOF
	}
	n, err := readAvailable(o.file, buffer)
	o.drained += n
	return n, err
}
