//go:build !unix

package process

import (
	"io"
	"os"
	"os/exec"
)

// lmwire's worker runs on macOS and Linux. Elsewhere a command such as `ssh -T host lmwire worker` leads to one; without
// process groups a signal reaches that command alone.

func setGroup(*exec.Cmd) {}

func terminateGroup(pid int) { killGroup(pid) }

func killGroup(pid int) {
	if process, err := os.FindProcess(pid); err == nil {
		_ = process.Kill()
	}
}

func readAvailable(*os.File, []byte) (int, error) { return 0, io.EOF }

// Signal returns the name of the signal that ended a process, or an empty text.
func Signal(*os.ProcessState) string { return "" }
