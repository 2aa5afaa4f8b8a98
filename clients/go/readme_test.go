package lmwire_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	lmwire "github.com/lmwire/lmwire/clients/go"
)

// readme is the program of README.md.
func readme(ctx context.Context) error {
	worker, err := lmwire.Start(ctx)
	if err != nil {
		return err // one sentence: which worker did not start, and what to install
	}
	defer worker.Close()
	if _, err := worker.Load(ctx, lmwire.LoadParams{Path: "builtin:tiny"}); err != nil {
		return err
	}
	params := lmwire.ChatParams{Messages: []lmwire.Message{lmwire.UserMessage("Who are you?")}}
	params.MaxTokens = lmwire.Ptr[int64](200)
	for event, err := range worker.Chat(ctx, params) {
		if err != nil {
			return err // errors.Is(err, lmwire.ErrBusy), errors.Is(err, lmwire.ErrWorkerLost) …
		}
		fmt.Print(event.Text())
	}
	return nil
}

func TestTheReadmeShowsAProgramThatRuns(t *testing.T) {
	source, err := os.ReadFile("readme_test.go")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, body, _ := strings.Cut(string(source), "func readme(ctx context.Context) error {\n")
	body, _, _ = strings.Cut(body, "\treturn nil\n}")
	if program := strings.ReplaceAll("\n"+body, "\n\t", "\n"); !strings.Contains(string(page), program+"```") {
		t.Errorf("README.md lacks the program:\n%s", program)
	}
	if err := readme(mockThatLoadsAnything(t)); err != nil {
		t.Error(err)
	}
}

// mockThatLoadsAnything makes the worker that is found a mock, and returns a context.
func mockThatLoadsAnything(t *testing.T) context.Context {
	if _, err := exec.LookPath("lmwire"); err != nil {
		t.Skip("lmwire is not on PATH")
	}
	path := filepath.Join(t.TempDir(), "scenario.json")
	if err := os.WriteFile(path, []byte(`{"rules": [{"match": {"cmd": "load"}, "reply": {}}, {"reply": {"text": "A worker.\n"}}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("LMWIRE_WORKER", `["lmwire", "mock", "--scenario", "`+path+`"]`)
	return t.Context()
}
