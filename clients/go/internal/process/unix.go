//go:build unix

package process

import (
	"io"
	"os"
	"os/exec"
	"syscall"
)

// setGroup gives the child a process group of its own. Signals then reach it and its children only, and Ctrl-C in the
// terminal does not reach them.
func setGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

func terminateGroup(pid int) { _ = syscall.Kill(-pid, syscall.SIGTERM) } // fails if the group is gone
func killGroup(pid int)      { _ = syscall.Kill(-pid, syscall.SIGKILL) }

// readAvailable reads what the pipe holds, and returns io.EOF if it holds nothing.
func readAvailable(file *os.File, buffer []byte) (n int, err error) {
	pipe, err := file.SyscallConn()
	if err != nil {
		return 0, err
	}
	var failed error
	err = pipe.Read(func(descriptor uintptr) bool {
		for n, failed = syscall.Read(int(descriptor), buffer); failed == syscall.EINTR; {
			n, failed = syscall.Read(int(descriptor), buffer)
		}
		return true // without waiting
	})
	if err != nil {
		return 0, err
	}
	if n <= 0 {
		return 0, io.EOF
	}
	return n, nil
}

// Signal returns the name of the signal that ended a process, or an empty text.
func Signal(state *os.ProcessState) string {
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return status.Signal().String()
	}
	return ""
}
