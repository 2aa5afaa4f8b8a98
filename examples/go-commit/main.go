// Command go-commit writes a commit message for the staged changes, with a model that runs in a child process:
//
//	go run . [-model MODEL] [-commit]
//
// Ctrl-C ends the answer and keeps its text so far.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"

	lmwire "github.com/lmwire/lmwire/clients/go"
)

const instructions = `Write a commit message for the diff. The first line is an imperative sentence of at most 72 characters.
A blank line and one or two sentences about the reason may follow. Write nothing else.`

func main() {
	model := flag.String("model", "mlx-community/Qwen3-0.6B-4bit", "a folder, a hub id or an alias")
	commit := flag.Bool("commit", false, "commit with the message")
	flag.Parse()
	if err := run(*model, *commit, os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "go-commit:", err)
		os.Exit(1)
	}
}

func run(model string, commit bool, out, status io.Writer) error {
	diff, err := exec.Command("git", "diff", "--staged").Output()
	if err != nil {
		return fmt.Errorf("git diff: %w", err)
	}
	if len(diff) == 0 {
		return errors.New("no changes are staged: run `git add` first")
	}
	ctx := context.Background()
	worker, err := lmwire.Start(ctx)
	if err != nil {
		return err
	}
	defer worker.Close()
	if _, err := worker.Load(ctx, lmwire.LoadParams{Path: model}, lmwire.WithProgress(showOn(status))); err != nil {
		return err
	}
	message, err := write(ctx, worker, string(diff), out)
	if err != nil || !commit {
		return err
	}
	git := exec.Command("git", "commit", "--file=-")
	git.Stdin, git.Stdout, git.Stderr = strings.NewReader(message), status, status
	return git.Run()
}

// showOn returns a function that shows the progress of a load.
func showOn(status io.Writer) func(lmwire.Progress) {
	return func(progress lmwire.Progress) {
		if progress.Total != nil {
			fmt.Fprintf(status, "\r%s %d of %d %s", progress.Stage, progress.Current, *progress.Total, progress.Unit)
		}
		if progress.Total != nil && progress.Current == *progress.Total {
			fmt.Fprintln(status)
		}
	}
}

// write streams the message, and returns it.
func write(ctx context.Context, worker *lmwire.Worker, diff string, out io.Writer) (string, error) {
	interrupted, stop := signal.NotifyContext(ctx, os.Interrupt)
	defer stop()
	params := lmwire.ChatParams{
		Messages:  []lmwire.Message{lmwire.SystemMessage(instructions), lmwire.UserMessage(diff)},
		Reasoning: "off",
		Generation: lmwire.Generation{
			MaxTokens: lmwire.Ptr[int64](200),
			Truncate:  "middle", // of a diff that is longer than the context
		},
	}
	var message strings.Builder
	for event, err := range worker.Chat(ctx, params, lmwire.WithStop(interrupted.Done())) {
		if err != nil {
			return "", err
		}
		fmt.Fprint(out, event.Text())
		message.WriteString(event.Text())
	}
	fmt.Fprintln(out)
	return strings.TrimSpace(message.String()), nil
}
