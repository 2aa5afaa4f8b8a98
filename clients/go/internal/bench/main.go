// Command bench measures this package for `lmwire bench hosts`, which builds and starts it:
//
//	bench STREAMS COMMAND...
//
// It starts the command as a worker. It prints the time to the first token, and then how many events come in how long.
package main

import (
	"context"
	"encoding/json"
	"log"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	lmwire "github.com/lmwire/lmwire/clients/go"
)

func main() {
	streams, err := strconv.Atoi(os.Args[1])
	must(err)
	started := time.Now()
	worker, err := lmwire.Start(context.Background(), lmwire.WithCommand(os.Args[2], os.Args[3:]...))
	must(err)
	_, err = worker.Load(context.Background(), lmwire.LoadParams{Path: "mock"})
	must(err)
	firstToken := timeToToken(worker, started)
	began := time.Now()
	events := burst(worker, streams)
	seconds := time.Since(began).Seconds()
	must(worker.Close())
	must(json.NewEncoder(os.Stdout).Encode(map[string]any{
		"first_token_ms": firstToken.Seconds() * 1000, "events": events, "seconds": seconds,
	}))
}

// timeToToken returns the time from the start to the first token.
func timeToToken(worker *lmwire.Worker, started time.Time) (took time.Duration) {
	for event, err := range worker.Generate(context.Background(), lmwire.GenerateParams{Prompt: "first"}) {
		must(err)
		if _, ok := event.(*lmwire.Token); ok && took == 0 {
			took = time.Since(started)
		}
	}
	return took
}

// burst reads streams at the same time, and returns the number of their tokens.
func burst(worker *lmwire.Worker, streams int) int64 {
	var total atomic.Int64
	var running sync.WaitGroup
	for range streams {
		running.Go(func() {
			count := 0
			for event, err := range worker.Generate(context.Background(), lmwire.GenerateParams{Prompt: "burst"}) {
				must(err)
				if token, ok := event.(*lmwire.Token); ok {
					count += len(token.TokenIDs)
				}
			}
			total.Add(int64(count))
		})
	}
	running.Wait()
	return total.Load()
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
