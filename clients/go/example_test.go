package lmwire_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"

	lmwire "github.com/lmwire/lmwire/clients/go"
)

// mock is a worker for tests, which repeats the last message.
var mock = lmwire.WithCommand("lmwire", "mock", "--model", "mock")

func Example() {
	ctx := context.Background()
	worker, err := lmwire.Start(ctx)
	if err != nil {
		log.Fatal(err)
	}
	defer worker.Close()
	if _, err := worker.Load(ctx, lmwire.LoadParams{Path: "builtin:tiny"}); err != nil {
		log.Fatal(err)
	}
	params := lmwire.ChatParams{Messages: []lmwire.Message{lmwire.UserMessage("Who are you?")}}
	params.MaxTokens = lmwire.Ptr[int64](3)
	for event, err := range worker.Chat(ctx, params) {
		if err != nil {
			log.Fatal(err)
		}
		switch event := event.(type) {
		case *lmwire.Token:
			fmt.Print(event.Text())
		case *lmwire.Result:
			fmt.Printf(" (%s)\n", event.FinishReason)
		}
	}
	// Output: I am the (length)
}

func ExampleWorker_Complete() {
	ctx := context.Background()
	worker, err := lmwire.Start(ctx, mock)
	if err != nil {
		log.Fatal(err)
	}
	defer worker.Close()
	if _, err := worker.Load(ctx, lmwire.LoadParams{}); err != nil {
		log.Fatal(err)
	}
	conversation := []lmwire.Message{lmwire.UserMessage("one two")}
	response, err := worker.Complete(ctx, lmwire.ChatParams{Messages: conversation})
	if err != nil {
		log.Fatal(err)
	}
	conversation = append(conversation, response.Message(), lmwire.UserMessage("three"))
	response, err = worker.Complete(ctx, lmwire.ChatParams{Messages: conversation})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(response.Text, response.FinishReason, response.Result.Usage.CompletionTokens > 0)
	// Output: three stop true
}

func ExampleAccumulator() {
	ctx := context.Background()
	worker, err := lmwire.Start(ctx, mock)
	if err != nil {
		log.Fatal(err)
	}
	defer worker.Close()
	if _, err := worker.Load(ctx, lmwire.LoadParams{}); err != nil {
		log.Fatal(err)
	}
	var accumulator lmwire.Accumulator
	params := lmwire.GenerateParams{Prompt: "a b c"}
	for event, err := range worker.Generate(ctx, params) {
		if err != nil {
			log.Fatal(err)
		}
		accumulator.Add(event) // and show event.Text()
	}
	response, err := accumulator.Response()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(response.Text)
	// Output: a b c
}

func ExampleRequestError() {
	ctx := context.Background()
	worker, err := lmwire.Start(ctx, mock)
	if err != nil {
		log.Fatal(err)
	}
	defer worker.Close()
	_, err = worker.Info(ctx)
	var refused *lmwire.RequestError
	if errors.Is(err, lmwire.ErrNotLoaded) && errors.As(err, &refused) {
		fmt.Println(refused.Message, refused.Retryable)
	}
	// Output: no model is loaded; send a load first false
}

func ExampleSupervisor() {
	ctx := context.Background()
	supervisor := &lmwire.Supervisor{
		Options: []lmwire.Option{mock},
		Setup: func(ctx context.Context, worker *lmwire.Worker) error {
			_, err := worker.Load(ctx, lmwire.LoadParams{})
			return err
		},
	}
	defer supervisor.Close()
	worker, err := supervisor.Worker(ctx) // for each request: a new worker if the one before is gone
	if err != nil {
		log.Fatal(err)
	}
	model, err := worker.Info(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(model.Capabilities[0])
	// Output: generate
}

func ExampleToolCall() {
	call := lmwire.ToolCall{ID: "c1", Name: "weather", Arguments: json.RawMessage(`{"city": "Rome"}`)}
	var arguments struct{ City string }
	if err := json.Unmarshal(call.Arguments, &arguments); err != nil {
		log.Fatal(err)
	}
	message := call.Result("30 degrees in " + arguments.City)
	fmt.Println(message.Role, message.ToolCallID, message.Content)
	// Output: tool c1 30 degrees in Rome
}
