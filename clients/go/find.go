package lmwire

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"
)

// A place is where a worker was found.
type place struct {
	command      []string
	hostWatch    bool
	startTimeout time.Duration
}

// findWorker returns the first worker in the order of docs/hosts.md.
func findWorker(c *config) (place, error) {
	found, err := firstWorker(c)
	if err != nil {
		return place{}, err
	}
	found.command = append(found.command, c.args...)
	if c.hostWatch != nil {
		found.hostWatch = *c.hostWatch
	}
	if c.startTimeout != 0 {
		found.startTimeout = c.startTimeout
	} else if found.startTimeout == 0 {
		found.startTimeout = startTimeout
	}
	return found, nil
}

func firstWorker(c *config) (place, error) {
	if len(c.command) > 0 {
		return place{command: c.command}, nil
	}
	if program := bundledProgram(); program != "" {
		return place{command: []string{program, "worker"}, hostWatch: true}, nil
	}
	if value := os.Getenv("LMWIRE_WORKER"); value != "" {
		return namedWorker(value)
	}
	if program, err := exec.LookPath("lmwire"); err == nil {
		return place{command: []string{program, "worker"}, hostWatch: true}, nil
	}
	remedy := "allow a download with the option uvx"
	if c.uvx {
		remedy = "install uv for the option uvx"
		if program, err := exec.LookPath("uvx"); err == nil {
			command := []string{program, "--from", packages(), "lmwire", "worker"}
			return place{command: command, hostWatch: true, startTimeout: downloadTimeout}, nil
		}
	}
	const places = "put lmwire on PATH, name a worker in $LMWIRE_WORKER"
	return place{}, fmt.Errorf("%w: %s, or %s", ErrWorkerNotFound, places, remedy)
}

// packages returns what uvx installs for this machine's models.
func packages() string {
	if runtime.GOOS == "darwin" {
		return "lmwire[worker]==" + Version
	}
	return "lmwire[cpu]==" + Version
}

// bundledProgram returns the program in the folder that an app ships, or an empty text.
func bundledProgram() string {
	executable, err := os.Executable()
	if err != nil || !filepath.IsAbs(executable) {
		return ""
	}
	if real, err := filepath.EvalSymlinks(executable); err == nil {
		executable = real
	}
	folder := filepath.Dir(executable)
	folders := []string{folder}
	if runtime.GOOS == "darwin" {
		folders = append(folders, filepath.Join(folder, "..", "Resources"))
	}
	for _, folder := range folders {
		program := filepath.Join(folder, "lmwire", "lmwire")
		if info, err := os.Stat(program); err == nil && info.Mode().IsRegular() {
			return program
		}
	}
	return ""
}

// namedWorker returns the worker that $LMWIRE_WORKER names: a program, or a whole command as a JSON list.
func namedWorker(value string) (place, error) {
	if value[0] != '[' {
		return place{command: []string{value, "worker"}, hostWatch: true}, nil
	}
	var command []string
	if err := json.Unmarshal([]byte(value), &command); err != nil || len(command) == 0 {
		return place{}, errors.New("$LMWIRE_WORKER must name a program, or be a JSON list of strings: a command")
	}
	return place{command: command}, nil
}
