// Package lmwire runs an MLX language model as a child process, the worker, and talks to it over its pipes.
//
//	worker, err := lmwire.Start(ctx)
//	if err != nil {
//		return err
//	}
//	defer worker.Close()
//	if _, err := worker.Load(ctx, lmwire.LoadParams{Path: "mlx-community/Qwen3-0.6B-4bit"}); err != nil {
//		return err
//	}
//	params := lmwire.ChatParams{Messages: []lmwire.Message{lmwire.UserMessage("Why is the sky blue?")}}
//	for event, err := range worker.Chat(ctx, params) {
//		if err != nil {
//			return err
//		}
//		fmt.Print(event.Text())
//	}
//
// A [Worker] serves many requests at once. To break out of a loop over events, or to end its context, cancels that request
// and nothing else. [WithStop] ends one early and keeps its answer so far. An [Accumulator] joins events to whole answers;
// [Worker.Complete] does all of it in one call.
//
// A request fails with a [*RequestError], whose code errors.Is finds, or with a [*LostError] if the worker is gone. No
// request is repeated. A [Supervisor] starts a new worker after one has died or hung.
//
// The fields of a request are plain where their zero value is the protocol's default, and pointers where 0 or false has a
// meaning of its own; see [Ptr]. Strings that are not UTF-8 are sent with U+FFFD in place of the wrong bytes, as
// encoding/json writes them. The documents of the protocol describe each field and its bounds.
//
// The worker runs on macOS and Linux. Elsewhere [WithCommand] reaches one on another machine, over ssh for example.
package lmwire
