// Command chat answers each line of stdin with the built-in model. A test ships it beside a bundle.
//
// It first prints the worker's process id and version.
package main

import (
	"bufio"
	"context"
	"fmt"
	"log"
	"os"

	lmwire "github.com/lmwire/lmwire/clients/go"
)

func main() {
	ctx := context.Background()
	worker, err := lmwire.Start(ctx)
	must(err)
	_, err = worker.Load(ctx, lmwire.LoadParams{Path: "builtin:tiny"})
	must(err)
	fmt.Println(worker.PID(), worker.Hello().Worker)
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); fmt.Println() {
		params := lmwire.ChatParams{Messages: []lmwire.Message{lmwire.UserMessage(lines.Text())}}
		params.MaxTokens, params.Temperature = lmwire.Ptr[int64](20), lmwire.Ptr(0.0)
		for event, err := range worker.Chat(ctx, params) {
			must(err)
			fmt.Print(event.Text())
		}
	}
	must(worker.Close())
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
