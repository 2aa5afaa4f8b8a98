package lmwire

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// program makes an executable file, and returns its path.
func program(t *testing.T, folder, name string) string {
	t.Helper()
	path := filepath.Join(folder, name)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// found returns the command and the settings of the worker that is found.
func found(t *testing.T, options ...Option) place {
	t.Helper()
	c := newConfig(options)
	place, err := findWorker(&c)
	if err != nil {
		t.Fatal(err)
	}
	return place
}

func expectCommand(t *testing.T, got place, want ...string) {
	t.Helper()
	if !slices.Equal(got.command, want) {
		t.Errorf("the command is %q, not %q", got.command, want)
	}
}

func TestTheWorkerIsSoughtInTheDocumentedOrder(t *testing.T) {
	folder := t.TempDir()
	t.Setenv("PATH", filepath.Join(folder, "path"))
	uvx := program(t, filepath.Join(folder, "path"), "uvx")
	fetched := found(t, WithUvx())
	expectCommand(t, fetched, uvx, "--from", packages(), "lmwire", "worker")
	if fetched.startTimeout != downloadTimeout || !strings.Contains(packages(), "=="+Version) {
		t.Errorf("%+v", fetched)
	}

	onPath := program(t, filepath.Join(folder, "path"), "lmwire")
	expectCommand(t, found(t), onPath, "worker")

	t.Setenv("LMWIRE_WORKER", "/opt/an app/lmwire")
	expectCommand(t, found(t), "/opt/an app/lmwire", "worker")

	executable, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	bundle := filepath.Join(filepath.Dir(executable), "lmwire")
	t.Cleanup(func() { os.RemoveAll(bundle) })
	bundled := program(t, bundle, "lmwire")
	shipped := found(t, WithArgs("--memory-limit", "1"))
	expectCommand(t, shipped, bundled, "worker", "--memory-limit", "1")
	if !shipped.hostWatch || shipped.startTimeout != startTimeout {
		t.Errorf("%+v", shipped)
	}

	given := found(t, WithCommand("ssh", "-T", "host", "lmwire", "worker"))
	expectCommand(t, given, "ssh", "-T", "host", "lmwire", "worker")
	if given.hostWatch || !found(t, WithCommand("lmwire"), WithHostWatch(true)).hostWatch {
		t.Error("a whole command may lead to another machine, unless the host says that it does not")
	}
}

func TestTheFileOfAHostWithoutIDsIsAWorkerToo(t *testing.T) {
	if _, err := exec.LookPath("../../.venv/bin/python"); err != nil {
		t.Skip("the repository's Python is not beside this module")
	}
	worker := start(t, WithCommand("../../.venv/bin/python", "../../worker/bridge.py"), WithHostWatch(true))
	if _, err := worker.Info(within(t)); !errors.Is(err, ErrNotLoaded) {
		t.Errorf("the error is %v", err)
	}
}

func TestTheEnvironmentMayHoldAWholeCommand(t *testing.T) {
	t.Setenv("LMWIRE_WORKER", `["docker", "exec", "-i", "a box", "lmwire", "worker"]`)
	place := found(t)
	expectCommand(t, place, "docker", "exec", "-i", "a box", "lmwire", "worker")
	if place.hostWatch {
		t.Error("the command may lead to another machine")
	}
	for _, wrong := range []string{"[", "[]", "[1]"} {
		t.Setenv("LMWIRE_WORKER", wrong)
		if _, err := Start(t.Context()); err == nil || !strings.Contains(err.Error(), "$LMWIRE_WORKER must") {
			t.Errorf("%s: the error is %v", wrong, err)
		}
	}
}

func TestUvxRunsNoPackageUnlessTheHostAllowsIt(t *testing.T) {
	folder := t.TempDir()
	t.Setenv("PATH", folder)
	program(t, folder, "uvx")
	_, err := Start(t.Context())
	var failed *StartError
	if !errors.Is(err, ErrWorkerNotFound) || !errors.As(err, &failed) || failed.Command != nil {
		t.Fatalf("the error is %v", err)
	}
}

func TestWithoutAWorkerTheErrorSaysWhatToDo(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	start := "lmwire: no worker found: put lmwire on PATH, name a worker in $LMWIRE_WORKER, or "
	if _, err := Start(t.Context()); err == nil || err.Error() != start+"allow a download with the option uvx" {
		t.Errorf("the error is %v", err)
	}
	if _, err := Start(t.Context(), WithUvx()); err == nil || err.Error() != start+"install uv for the option uvx" {
		t.Errorf("the error is %v", err)
	}
}

func TestTheVersionIsThatOfTheProtocolsPackage(t *testing.T) {
	source, err := os.ReadFile(filepath.Join(protocolFolder, "lmwire_protocol", "__init__.py"))
	if err != nil {
		t.Skip("the protocol's files are not beside this module")
	}
	if !strings.Contains(string(source), `__version__ = "`+Version+`"`) {
		t.Errorf("the version of the packages is not %s", Version)
	}
}
