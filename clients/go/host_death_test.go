//go:build unix

package lmwire

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// runHost is a program that starts a worker, prints a line when an endless chat streams, and reads on.
func runHost(pipe string) error {
	command := fmt.Sprintf("exec 9>'%s'; exec lmwire mock --model mock --token-ms 20", pipe)
	worker, err := Start(context.Background(), WithCommand("sh", "-c", command), WithHostWatch(true))
	if err != nil {
		return err
	}
	if _, err := worker.Load(context.Background(), LoadParams{}); err != nil {
		return err
	}
	params := chat("on and on")
	params.IgnoreEOS = true
	for event, err := range worker.Chat(context.Background(), params) {
		if err != nil {
			return err
		}
		if event.Text() != "" {
			fmt.Println("streams")
		}
	}
	return nil
}

func TestAHostThatIsKilledLeavesNoWorker(t *testing.T) {
	t.Parallel()
	if pipe := os.Getenv("LMWIRE_TEST_HOST"); pipe != "" {
		t.Fatal(runHost(pipe))
	}
	if !hasWorker {
		t.Skip("lmwire is not on PATH")
	}
	// The worker holds the pipe open as long as it lives.
	path := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	pipe, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer pipe.Close()
	host := exec.Command(os.Args[0], "-test.run", "^TestAHostThatIsKilledLeavesNoWorker$")
	host.Env = append(os.Environ(), "LMWIRE_TEST_HOST="+path)
	output, err := host.StdoutPipe()
	if err != nil || host.Start() != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(output).ReadString('\n'); line != "streams\n" {
		t.Fatalf("%v: the host printed %q", err, line)
	}
	if err := host.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = host.Wait() // it was killed
	if err := pipe.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(pipe); err != nil {
		t.Errorf("the worker lives on: %v", err)
	}
}
