package main

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// enterRepository makes a repository with the staged text and a worker that replies to it, and goes there.
func enterRepository(t *testing.T, staged string) {
	bin, err := filepath.Abs("../../.venv/bin")
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	if _, err := exec.LookPath("lmwire"); err != nil {
		t.Skip("lmwire is not on PATH")
	}
	t.Chdir(t.TempDir())
	scenario := `{"rules": [{"match": {"last_message": "green"}, "reply": {"text": "Paint the door green\n\nRed was too loud."}}]}`
	if err := os.WriteFile("scenario.json", []byte(scenario), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("LMWIRE_WORKER", `["lmwire", "mock", "--scenario", "scenario.json"]`)
	for _, name := range []string{"GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"} {
		t.Setenv(name, "ada@example.org")
	}
	git(t, "init", "--quiet")
	if staged != "" {
		if err := os.WriteFile("door.txt", []byte(staged), 0o600); err != nil {
			t.Fatal(err)
		}
		git(t, "add", "door.txt")
	}
}

func git(t *testing.T, args ...string) string {
	t.Helper()
	output, err := exec.Command("git", args...).CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v: %s", args, err, output)
	}
	return string(output)
}

func TestTheMessageIsStreamedAndCommitted(t *testing.T) {
	enterRepository(t, "green\n")
	var out bytes.Buffer
	if err := run("mock", true, &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	want := "Paint the door green\n\nRed was too loud."
	if out.String() != want+"\n" || strings.TrimSpace(git(t, "log", "--format=%B")) != want {
		t.Errorf("%q was printed", out.String())
	}
}

func TestWithoutStagedChangesNoWorkerStarts(t *testing.T) {
	enterRepository(t, "")
	t.Setenv("LMWIRE_WORKER", "/nonexistent")
	if err := run("mock", false, io.Discard, io.Discard); err == nil || !strings.Contains(err.Error(), "git add") {
		t.Errorf("the error is %v", err)
	}
}
