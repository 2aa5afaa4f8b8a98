package lmwire_test

import (
	"context"
	"fmt"
	"os"
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
}

func Example_readme() {
	if err := readme(context.Background()); err != nil {
		fmt.Println(err)
	}
	// Output: I am the tiny model that ships with lmwire. I show that everything works; I know little else.
}
