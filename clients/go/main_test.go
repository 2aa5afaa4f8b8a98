package lmwire

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// hasWorker reports whether `lmwire` is on PATH.
var hasWorker bool

func TestMain(m *testing.M) {
	flag.Parse()
	if folder, err := filepath.Abs("../../.venv/bin"); err == nil {
		os.Setenv("PATH", folder+string(os.PathListSeparator)+os.Getenv("PATH"))
	}
	os.Unsetenv("LMWIRE_WORKER")
	_, err := exec.LookPath("lmwire")
	hasWorker = err == nil
	if !hasWorker {
		if os.Getenv("CI") == "true" {
			fmt.Fprintln(os.Stderr, "lmwire is not on PATH")
			os.Exit(1)
		}
		flag.Set("test.skip", "^Example")
	}
	os.Exit(m.Run())
}

// start returns a worker that ends with the test.
func start(t testing.TB, options ...Option) *Worker {
	t.Helper()
	if !hasWorker {
		t.Skip("lmwire is not on PATH")
	}
	worker, err := Start(t.Context(), options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { worker.Close() })
	return worker
}

func mock(args ...string) Option {
	return WithCommand("lmwire", append([]string{"mock", "--model", "mock"}, args...)...)
}

// startMock returns a mock worker with a loaded model.
func startMock(t testing.TB, args ...string) *Worker {
	t.Helper()
	worker := start(t, mock(args...))
	if _, err := worker.Load(t.Context(), LoadParams{}); err != nil {
		t.Fatal(err)
	}
	return worker
}

// startScenario returns a mock worker with a loaded model that replies by rules.
func startScenario(t testing.TB, rules ...map[string]any) *Worker {
	t.Helper()
	return startMock(t, "--scenario", scenario(t, rules...))
}

// scenario returns the path of a file with rules.
func scenario(t testing.TB, rules ...map[string]any) string {
	t.Helper()
	data, err := json.Marshal(map[string]any{"rules": rules})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "scenario.json")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func chat(text string) ChatParams { return ChatParams{Messages: []Message{UserMessage(text)}} }

// patience is the time after which a test that waits for an event fails. No test that passes waits that long.
const patience = 2 * time.Minute

func within(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// await waits for the closing of a channel.
func await(t testing.TB, done <-chan struct{}) {
	t.Helper()
	select {
	case <-done:
	case <-within(t).Done():
		t.Fatal("the event did not come")
	}
}
